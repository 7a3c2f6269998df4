//! Words about time: what they say, and which dates they mean when it is known on which day they were said.

use super::super::calendar::{self, Day, Grain};
use super::super::words;
use super::{Form, Reader, Seen};

impl Reader<'_> {
    /// Understands words about time, by the two words before.
    pub(super) fn time_word(&mut self, word: &str) {
        let [near, far] = self.before;
        let seen = match word {
            "last" | "past" | "previous" => Seen::Past,
            "next" | "coming" | "upcoming" => Seen::Coming,
            "this" => Seen::Present,
            "a" | "an" => Seen::Number(1),
            "couple" => Seen::Number(2),
            "few" => Seen::Number(3),
            "day" | "days" => Seen::Days(1),
            "week" | "weeks" | "weekend" | "weekends" => Seen::Days(7),
            "month" | "months" => Seen::Months(1),
            "year" | "years" => Seen::Months(12),
            "what" | "which" => Seen::What,
            "how" => Seen::How,
            // Between a day and its month, and in "a couple of years ago".
            "of" | "the" => return,
            _ => match (words::number(word), calendar::month_of(word)) {
                (Some(number), _) => Seen::Number(i64::from(number)),
                (None, Some(month)) => Seen::Month(month),
                (None, None) => Seen::Other,
            },
        };
        self.analysis.asks_when |= word == "when"
            || (near == Seen::What
                && (matches!(seen, Seen::Days(_) | Seen::Months(_)) || matches!(word, "date" | "time")))
            || (near == Seen::How && matches!(word, "long" | "soon" | "recently"));
        self.analysis.asks_number |=
            near == Seen::How && matches!(word, "many" | "much" | "old" | "often" | "tall" | "far");
        let relative = match (word, seen, near) {
            ("yesterday", ..) => Some((-1, 0, Grain::Day)),
            ("today" | "tonight", ..) => Some((0, 0, Grain::Day)),
            ("tomorrow", ..) => Some((1, 0, Grain::Day)),
            ("ago", ..) => match (near, far) {
                (Seen::Days(days), Seen::Number(count)) => Some((
                    -days * count.min(4_000),
                    0,
                    if days == 1 { Grain::Day } else { Grain::Month },
                )),
                (Seen::Months(months), Seen::Number(count)) => Some((
                    0,
                    -months * count.min(1_000),
                    if months == 1 { Grain::Month } else { Grain::Year },
                )),
                _ => None,
            },
            (_, Seen::Days(days), Seen::Past) => Some((-days, 0, Grain::Month)),
            (_, Seen::Days(days), Seen::Coming) => Some((days, 0, Grain::Month)),
            (_, Seen::Days(_), Seen::Present) => Some((0, 0, Grain::Month)),
            (_, Seen::Months(months), Seen::Past) => Some((0, -months, month_or_year(months))),
            (_, Seen::Months(months), Seen::Coming) => Some((0, months, month_or_year(months))),
            (_, Seen::Months(months), Seen::Present) => Some((0, 0, month_or_year(months))),
            _ => None,
        };
        let weekday = calendar::weekday_of(word);
        self.analysis.says_when |= relative.is_some()
            || weekday.is_some()
            || matches!(
                word,
                "ago" | "since" | "recently" | "night" | "morning" | "evening" | "afternoon" | "weekend"
            )
            || matches!((seen, near), (Seen::Days(_) | Seen::Months(_), Seen::Number(_)))
            || (matches!(seen, Seen::Month(_)) && !matches!(word, "may" | "march" | "mar"));
        if let Some(said_on) = self.context.said_on {
            if let Some((days, months, grain)) = relative {
                let day = if months == 0 {
                    said_on.plus_days(days)
                } else {
                    said_on.plus_months(months)
                };
                self.date(day, grain);
            } else if let Some(weekday) = weekday {
                self.weekday(said_on, weekday, near);
            }
        }
        if let (Seen::Month(month), Seen::Number(day @ 1..=31)) = (seen, near) {
            self.day_of_year(month, day as u32);
        }
        self.remember(seen);
    }

    /// "last Friday" and "next Friday"; a bare "Friday" may be either and stays a word.
    fn weekday(&mut self, said_on: Day, weekday: i64, near: Seen) {
        let ahead = (weekday - said_on.weekday()).rem_euclid(7);
        match near {
            Seen::Past => self.date(said_on.plus_days(if ahead == 0 { -7 } else { ahead - 7 }), Grain::Day),
            Seen::Coming => self.date(said_on.plus_days(if ahead == 0 { 7 } else { ahead }), Grain::Day),
            _ => {}
        }
    }

    pub(super) fn day_of_year(&mut self, month: u32, day: u32) {
        self.analysis.says_when = true;
        let mut term = std::mem::take(&mut self.buffers.term);
        calendar::day_term(month, day, &mut term);
        self.emit(&term, Form::Day);
        self.buffers.term = term;
    }

    pub(super) fn date(&mut self, day: Day, grain: Grain) {
        let (year, month, of_month) = day.date();
        if grain == Grain::Day {
            self.day_of_year(month, of_month);
        }
        if grain >= Grain::Month {
            self.stem(calendar::month_name(month));
        }
        self.emit(&year.to_string(), Form::Word);
    }
}

const fn month_or_year(months: i64) -> Grain {
    if months == 1 { Grain::Month } else { Grain::Year }
}
