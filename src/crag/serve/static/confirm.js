/** The human's decision about a web search: search, search for something else, or refuse. */

import { byId, element, show } from "./dom.js";

/**
 * Ask, and move the focus there.
 * @param {{query?: string, reason?: string}} request what the run was interrupted with
 * @param {(answer: string|{query: string}) => void} decide
 */
export function askHuman(request, decide) {
  const section = byId("confirm");
  const query = element("input", { id: "query", name: "query", value: request.query ?? "", required: true });
  const answered = (answer) => {
    closeQuestion();
    decide(answer);
  };
  const onsubmit = (event) => {
    event.preventDefault();
    const edited = query.value.trim();
    answered(edited === request.query ? "approve" : { query: edited });
  };
  const title = element("h2", { id: "confirm-title", tabindex: "-1" }, "May the web be searched?");
  section.replaceChildren(
    title,
    element("p", request.reason ? `${request.reason}.` : "The run asks before it goes on."),
    element(
      "form",
      { onsubmit },
      element("label", { for: "query" }, "What will be searched for"),
      query,
      element("button.primary", { type: "submit" }, "Search the web"),
      element("button", { onclick: () => answered("refuse") }, "Go on without the web"),
    ),
  );
  show(section, true);
  title.focus();
  section.scrollIntoView({ block: "nearest" });
}

/** Take the question away. */
export function closeQuestion() {
  const section = byId("confirm");
  section.replaceChildren();
  show(section, false);
}
