/** Bars of scores against both thresholds. */

import { element } from "./dom.js";
import { score } from "./words.js";

/** Name the zone of a score: what the action would be if this were the best document. */
export function zone(points, { upper, lower }) {
  if (points >= upper) return "correct";
  return points >= lower ? "ambiguous" : "incorrect";
}

/** Return a function that maps scores to percents; the range is that of the default evaluator,
 * or wider where scores or thresholds go beyond it. */
export function scale(scores, { upper, lower }) {
  let [from, to] = [Math.min(-1, lower, upper), Math.max(1, lower, upper)];
  for (const points of scores) [from, to] = [Math.min(from, points), Math.max(to, points)];
  return (points) => (100 * (points - from)) / (to - from);
}

/** Draw one score, with a mark at each threshold. */
export function bar(points, thresholds, percent) {
  const named = zone(points, thresholds);
  const track = element("span.track", { "aria-hidden": "true" }, element("span.filled"), element("span.limit.lower"), element("span.limit.upper"));
  track.style.setProperty("--score", `${percent(points)}%`);
  track.style.setProperty("--lower", `${percent(thresholds.lower)}%`);
  track.style.setProperty("--upper", `${percent(thresholds.upper)}%`);
  return element(
    "span.bar",
    { data: { zone: named } },
    track,
    element("span.score", score(points)),
    element("span.unseen", `, ${named}`),
  );
}

/** Say where the thresholds are, beside what their marks look like. */
export function legend({ upper, lower }) {
  return element(
    "p.legend",
    element("span.swatch", { data: { zone: "incorrect" } }, `below ${score(lower)} incorrect`),
    element("span.swatch", { data: { zone: "ambiguous" } }, "between: ambiguous"),
    element("span.swatch", { data: { zone: "correct" } }, `from ${score(upper)} correct`),
  );
}
