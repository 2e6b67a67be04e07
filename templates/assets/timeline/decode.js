// The data block of the page as numbers. Times are ns since the origin: whole numbers, exact in a float64.

/** Reads columns of a block; a place is [offset, length]. */
const blockReader = (block) => {
  const bytes = ([offset, length]) => block.subarray(offset, offset + length);

  /** Numbers from planes: the lowest byte of each, then the next one of each, and so on. */
  const numbers = (place, count) => {
    const planes = bytes(place);
    const values = new Float64Array(count);
    for (let at = 0, scale = 1; at < planes.length; at += count, scale *= 256) {
      for (let i = 0; i < count; i += 1) values[i] += planes[at + i] * scale;
    }
    return values;
  };

  /** Starts from their differences, the first counted from `base`; with `lengths` each from the end before it. */
  const starts = (place, count, base, lengths = null) => {
    const values = numbers(place, count);
    for (let i = 0, now = base; i < count; i += 1) {
      now += values[i];
      values[i] = now;
      if (lengths) now += lengths[i];
    }
    return values;
  };

  /** Numbers from their differences: even ones are from 0 up, odd ones below. */
  const running = ([place, count]) => {
    const values = numbers(place, count);
    for (let i = 0, now = 0; i < count; i += 1) {
      now += values[i] % 2 ? -(values[i] + 1) / 2 : values[i] / 2;
      values[i] = now;
    }
    return values;
  };

  const json = (place) => JSON.parse(new TextDecoder().decode(bytes(place)));

  /** Little-endian int16, whatever the alignment. */
  const shorts = (place) => {
    const raw = bytes(place);
    const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
    return Float64Array.from({ length: raw.byteLength >> 1 }, (_, i) => view.getInt16(2 * i, true));
  };
  return { bytes, numbers, starts, running, json, shorts };
};
