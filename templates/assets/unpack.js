// Scripts that the page carries packed: the policy allows each by the hash of what it unpacks to.

/** Run what an element holds as base64 of compressed text; `format` as DecompressionStream names it. */
const runPacked = async (element, format) => {
  const bytes = Uint8Array.from(atob(element.textContent), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
  script.remove();
};

const timelineScript = document.getElementById("timeline-script");
if (timelineScript && "DecompressionStream" in window) runPacked(timelineScript, "deflate");
