//! Counts the words of a text.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

#[derive(Debug, JsonSchema, PartialEq, Serialize)]
struct WordCount {
    words: usize,
    unique: usize,
    top: Vec<Frequency>,
}

#[derive(Debug, JsonSchema, PartialEq, Serialize)]
struct Frequency {
    word: String,
    #[schemars(range(min = 1))]
    count: usize,
}

/// Count the words of a text, and which of them are most frequent.
#[brain_tool::tool]
fn wordcount(
    text: &str,
    /// How many frequent words to name
    #[default(5)]
    #[schemars(range(max = 1000))]
    top: usize,
) -> WordCount {
    count(text, top)
}

/// A word is a run of letters, digits and apostrophes; case does not matter. Equally frequent words stand in order.
fn count(text: &str, top: usize) -> WordCount {
    let mut counts = BTreeMap::<String, usize>::new();
    let runs = text.split(|c: char| !c.is_alphanumeric() && c != '\'');
    for word in runs.filter(|run| run.contains(char::is_alphanumeric)) {
        *counts.entry(word.to_lowercase()).or_default() += 1;
    }
    let (words, unique) = (counts.values().sum(), counts.len());
    let mut top_words = counts.into_iter().map(|(word, count)| Frequency { word, count }).collect::<Vec<_>>();
    top_words.sort_by_key(|frequency| Reverse(frequency.count));
    top_words.truncate(top);
    WordCount { words, unique, top: top_words }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn top(text: &str, top: usize) -> Vec<(String, usize)> {
        count(text, top).top.into_iter().map(|f| (f.word, f.count)).collect()
    }

    #[test]
    fn words_are_counted_without_regard_to_case() {
        let counted = count("The cat, the hat. THE END!", 1);
        assert_eq!((counted.words, counted.unique), (6, 4));
        assert_eq!(top("The cat, the hat. THE END!", 1), [("the".to_owned(), 3)]);
    }

    #[test]
    fn equally_frequent_words_stand_in_order() {
        assert_eq!(top("b a b a c", 2), [("a".to_owned(), 2), ("b".to_owned(), 2)]);
    }

    #[test]
    fn words_of_any_script_count() {
        assert_eq!(count("naïve Ünïcode 你好 don't", 0).words, 4);
    }

    #[test]
    fn what_has_no_letter_or_digit_is_no_word() {
        assert_eq!(count(" ' -- 😀 ''", 5), WordCount { words: 0, unique: 0, top: vec![] });
    }
}
