//! The example: what a small team said while it built a parcel tracker.

/// Marks a project as the demo's own.
pub(super) const MARK: &str = "This project holds the example of waggle demo";

/// What the user said and what the assistant answered.
pub(super) const TURNS: [(&str, &str); 4] = [
    (
        "We are building a parcel tracker for the harbour office. Mara owns the scanner app.",
        "Noted: the scanner app belongs to Mara.",
    ),
    (
        "The scanners go offline for up to 40 minutes in the cold store, so the app must queue scans on the device.",
        "Then the queue has to survive a restart of the device as well.",
    ),
    (
        "I prefer short pull requests, and we deploy on Tuesdays.",
        "Understood: short pull requests, deployments on Tuesdays.",
    ),
    (
        "Labels are printed in Finnish and Swedish. The budget for the pilot is 18,000 euros.",
        "Two languages on the labels, and 18,000 euros for the pilot.",
    ),
];

pub(super) const QUESTIONS: [&str; 2] = ["who owns the scanner app", "how long are the scanners offline"];

pub(super) const FIRST_CHOICE: &str = "We decided to use PostgreSQL for parcel events";
pub(super) const SECOND_CHOICE: &str = "We decided to use MySQL for parcel events";
