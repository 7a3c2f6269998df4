//! Dates as terms: "8 May 2023", "2023-05-08" and "yesterday", said on the 9th, all give the same ones.

use std::fmt::Write as _;

/// A day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Day {
    /// Days since 1970-01-01.
    number: i64,
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

impl Day {
    /// The day of a moment, in UTC.
    pub fn of_millis(millis: i64) -> Self {
        // A year beyond the range of dates is a mistake of some client; it must not overflow the arithmetic.
        let limit = 8_000_000_000_000_000;
        Self {
            number: millis.clamp(-limit, limit).div_euclid(86_400_000),
        }
    }

    /// Days since 1970-01-01.
    pub fn number(self) -> i64 {
        self.number
    }

    /// Moved by days.
    pub fn plus_days(self, days: i64) -> Self {
        Self {
            number: self.number + days.clamp(-4_000_000, 4_000_000),
        }
    }

    /// The first of the month that lies so many months later.
    pub fn plus_months(self, months: i64) -> Self {
        let (year, month, _) = self.date();
        let total = year * 12 + i64::from(month) - 1 + months.clamp(-120_000, 120_000);
        Self::of_date(total.div_euclid(12), (total.rem_euclid(12) + 1) as u32, 1)
    }

    /// 0 for Monday.
    pub fn weekday(self) -> i64 {
        (self.number + 3).rem_euclid(7)
    }

    /// A date of the calendar; days beyond the month's end run on into the next.
    pub fn of_date(year: i64, month: u32, day: u32) -> Self {
        // Years begin in March here, so that the leap day is the last of its year.
        let year = if month <= 2 { year - 1 } else { year };
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let months_from_march = i64::from((month + 9) % 12);
        let day_of_year = (153 * months_from_march + 2) / 5 + i64::from(day) - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        Self {
            number: era * 146_097 + day_of_era - 719_468,
        }
    }

    /// Year, month (from 1) and day (from 1).
    pub fn date(self) -> (i64, u32, u32) {
        let shifted = self.number + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let months_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * months_from_march + 2) / 5 + 1;
        let month = if months_from_march < 10 {
            months_from_march + 3
        } else {
            months_from_march - 9
        };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        (year, month as u32, day as u32)
    }
}

/// How exactly a date is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grain {
    Year,
    Month,
    Day,
}

/// The term of a day of the year, such as "@05-08".
pub(super) fn day_term(month: u32, day: u32, into: &mut String) {
    into.clear();
    // Writing to a String cannot fail.
    let _ = write!(into, "@{month:02}-{day:02}");
}

/// The month of a name or of its usual abbreviation, from 1. "may" and "march" are verbs as well: whoever asks decides
/// by what stands beside them.
pub(super) fn month_of(word: &str) -> Option<u32> {
    let word = if word == "sept" { "sep" } else { word };
    let index = MONTHS
        .iter()
        .position(|name| *name == word || (word.len() == 3 && name.starts_with(word)))?;
    u32::try_from(index + 1).ok()
}

pub(super) fn month_name(month: u32) -> &'static str {
    MONTHS.get(month.wrapping_sub(1) as usize).copied().unwrap_or("")
}

/// 0 for Monday.
pub(super) fn weekday_of(word: &str) -> Option<i64> {
    let word = word
        .strip_suffix('s')
        .filter(|short| short.ends_with("day"))
        .unwrap_or(word);
    WEEKDAYS
        .iter()
        .position(|name| *name == word)
        .and_then(|index| i64::try_from(index).ok())
}

pub(super) fn weekday_name(weekday: i64) -> &'static str {
    WEEKDAYS
        .get(usize::try_from(weekday).unwrap_or(7))
        .copied()
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_inverse() {
        for number in (-800_000..800_000).step_by(97) {
            let day = Day { number };
            let (year, month, of_month) = day.date();
            assert_eq!(Day::of_date(year, month, of_month), day);
        }
        let day = Day::of_millis(1_683_554_160_000);
        assert_eq!(day.date(), (2023, 5, 8));
        assert_eq!(weekday_name(day.weekday()), "monday");
        assert_eq!(Day::of_date(2023, 1, 31).plus_months(1).date(), (2023, 2, 1));
        assert_eq!(Day::of_date(2023, 1, 31).plus_months(-13).date(), (2021, 12, 1));
    }

    #[test]
    fn absurd_moments_are_clamped() {
        let _ = Day::of_millis(i64::MAX)
            .plus_days(i64::MAX)
            .plus_months(i64::MAX)
            .date();
        let _ = Day::of_millis(i64::MIN)
            .plus_days(i64::MIN)
            .plus_months(i64::MIN)
            .date();
    }
}
