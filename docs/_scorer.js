// The order of results of the search: pages with a word in a title come first, then pages of causes, then others.
var Scorer = {
  score: ([page, , , , score]) => score + (page.startsWith("causes/") ? 9 : 0),
  objNameMatch: 11, objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
