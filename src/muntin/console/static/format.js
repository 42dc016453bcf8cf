// Numbers and times for people.

export function count(value) {
  return value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en-US");
}

export function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return `${(value / 1e9).toPrecision(3)} G`;
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  if (size >= 1e4) return `${(value / 1e3).toPrecision(3)} k`;
  if (size >= 100 || Number.isInteger(value)) return count(value);
  return value.toPrecision(3);
}

export const rate = (value) => `${short(value)}/s`;

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let [size, unit] = [value, 0];
  while (size >= 1024 && unit < units.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${unit ? size.toPrecision(3) : size} ${units[unit]}`;
}

export function seconds(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  if (value < 1e-3) return `${(value * 1e6).toPrecision(3)} µs`;
  if (value < 1) return `${(value * 1e3).toPrecision(3)} ms`;
  if (value < 120) return `${Number(value.toPrecision(3))} s`;
  return `${Number((value / 60).toPrecision(3))} min`;
}

export const percent = (value) =>
  value === null || value === undefined ? "–" : `${(value * 100).toFixed(value < 0.1 ? 1 : 0)} %`;

export const clock = (at) => new Date(at * 1000).toISOString().slice(11, 19);

// Not known is not the same as none.
export function instant(text) {
  if (text === undefined) return "–";
  return text ? text.replace(/\.(\d{3})\d+$/, ".$1") : "none yet";
}
