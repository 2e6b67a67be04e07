// Which records of a table match: by words anywhere in them, and by the values of columns that can be picked.

const MOST_PICKS = 40;

/** The columns whose cells say by what they can be picked, with the values to choose from. */
const readPicks = (columns, records) => columns
  .filter(({ at }) => records.some((record) => "f" in cellOf(record, at).dataset))
  .map((column) => ({ ...column, values: [...new Set(records.map((record) => cellOf(record, column.at).dataset.f))] }))
  .filter(({ values }) => values.length > 1 && values.length <= MOST_PICKS);

const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);

/** The records with all of these words and with the picked values. */
const matching = (sheet, records) => {
  const words = wordsOf(sheet.state.find);
  const picked = Object.entries(sheet.state.picks);
  return records.filter((record) => {
    const text = sheet.texts.get(record);
    return words.every((word) => text.includes(word))
      && picked.every(([column, value]) => cellOf(record, Number(column)).dataset.f === value);
  });
};
