"""Columns of nsys that are not declared, for nothing here reads them; other readers of exports ask for them.

Numbers of devices, kernels and call chains, nothing else.
"""

from __future__ import annotations

PLAIN = frozenset({
    "arrayOrUnionDetail", "cacheConfig", "clusterSchedulingPolicy", "constantMemory", "constantMemorySize",
    "deprecatedSrcId", "deprecatedSyncType", "flags", "idx", "l2CacheSize", "maxActiveClusters", "maxBlockDimX",
    "maxBlockDimY", "maxBlockDimZ", "maxBlocksPerMultiprocessor", "maxGridDimX", "maxGridDimY", "maxGridDimZ",
    "maxIPC", "maxPotentialClusterSize", "maxRegistersPerBlock", "maxRegistersPerMultiprocessor",
    "maxSharedMemoryPerBlock", "maxSharedMemoryPerMultiprocessor", "maxShmemPerBlock", "maxShmemPerBlockOptin",
    "maxThreadsPerBlock", "numMemcpyEngines", "numThreadsPerWarp", "numTpcs", "qmdBulkReleaseDone",
    "qmdLastCtaDone", "qmdPreexitDone", "sharedMemoryLimitConfig", "sharedMemoryRequestedPercentage", "smMajor",
    "smMinor", "tensorSizeMinusOneElements", "thumbCode", "type",
})  # fmt: skip
