// What the page knows: the latest snapshot, points of charts, and the results of one query.

const REMEMBERED = 300;
const MOST_ROWS = 200;
const SPAN = 5;

export const state = {
  about: null,
  snapshot: null,
  failure: "",
  points: [],
  connected: false,
  missed: 0,
  results: emptyResults(null),
  details: {},
  answers: {},
  width: 800,
};

export function emptyResults(query) {
  return { query, columns: [], rows: [], count: 0, leftOut: 0, obstacle: "" };
}

export function takeHistory({ points }) {
  state.points = points.slice(-REMEMBERED);
}

export function takeSnapshot(snapshot) {
  if (snapshot.failure) {
    state.failure = snapshot.failure;
    return;
  }
  state.failure = "";
  state.snapshot = snapshot;
  state.missed += snapshot.missed;
  const last = state.points.at(-1);
  if (last && last.at >= snapshot.at) return;
  state.points.push(pointOf(snapshot));
  if (state.points.length > REMEMBERED) state.points.shift();
}

export function takeResults(found) {
  const results = state.results;
  if (found.query !== results.query) return;
  results.columns = found.columns;
  results.rows.push(...found.rows);
  results.rows = results.rows.slice(-MOST_ROWS);
  results.count += found.count;
  results.leftOut += found.left_out;
}

function pointOf(snapshot) {
  const streams = Object.fromEntries(snapshot.streams.map((each) => [each.name, each.rows_in]));
  const queries = Object.fromEntries(snapshot.queries.map((each) => [each.name, {
    rows_out: each.rows_out,
    response: each.response,
    lag: each.overload?.lag_seconds ?? null,
    share: each.overload?.share_of_results ?? null,
  }]));
  return { at: snapshot.at, streams, queries };
}

// Rows per second over the last seconds, or null where too little is known.
export function rateOf(kind, name) {
  const value = (point) =>
    kind === "streams" ? point.streams[name] : point.queries[name]?.rows_out;
  const last = state.points.at(-1);
  if (!last || value(last) === undefined) return null;
  const first = state.points.find((point) =>
    last.at - point.at <= SPAN && value(point) !== undefined);
  if (!first || first === last) return null;
  return Math.max(value(last) - value(first), 0) / (last.at - first.at);
}

export function ratesOver(kind, name) {
  return state.points.map((point, place) => {
    const before = state.points[place - 1];
    const value = (each) =>
      kind === "streams" ? each?.streams[name] : each?.queries[name]?.rows_out;
    const [now, then] = [value(point), value(before)];
    return now === undefined || then === undefined ? null : Math.max(now - then, 0) / (point.at - before.at);
  });
}

export const queryNamed = (name) => state.snapshot?.queries.find((each) => each.name === name);
