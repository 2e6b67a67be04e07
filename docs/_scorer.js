// The order of results of the search: pages of causes come before others that have the same words.
var Scorer = {
  score: ([page, , , , score]) => score + (page.startsWith("causes/") ? 10 : 0),
  objNameMatch: 11, objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
