//! The table of pairs of the memory semantics: what a second statement is to a first one. Each row is
//! `id | first | second | outcome`; a statement is a fact unless it starts with another kind and a colon.
//! Rows whose outcome needs similarity, sessions or apply are in `apply`'s own tests; their texts must keep here.

use waggle_memory::kind::Kind;
use waggle_memory::read::{PairOutcome, StatementInput, blocking_gates, compare, read_statement};
use waggle_memory::time::Millis;

/// Wednesday, 10 February 2027, 12:00 UTC.
const NOW: Millis = Millis(1_802_260_800_000);

const TABLE: &str = "
P01  | The API uses gRPC | the  api uses GRPC | merge exact
P01  | caf\u{e9} on the corner | cafe\u{301} on the corner | merge exact
P02  | We deploy with blue green switches | We deploy with blue green switches | merge exact
P03  | User prefers Python for backend work | User prefers Python for backend work | merge exact
P04  | We chose PostgreSQL for production. | Reminder: we chose PostgreSQL for production. | merge canonical
P05  | JWT tokens expire after 15 minutes | JWTs expire after fifteen minutes | merge canonical
P05  | The limit is 1 hour | The limit is 60 minutes | merge canonical
P06  | entity: OpenAI organisation | entity: OpenAI organization | merge canonical
P07  | entity: National Aeronautics Space Administration | entity: NASA | merge canonical
P07  | (Large Language Model) Large Language Model memory is important for this project | (LLM) LLM memory is important for this project | merge canonical
P08  | We chose FastAPI for the service | FastAPI was chosen for the service | merge canonical
P09  | We use Postgres in production | We use PostgreSQL in production | merge canonical
P10  | The deploy runs every Friday at 5 pm | Deploys run every Friday at 17:00 | merge canonical
P11  | We don't use MongoDB | We do not use MongoDB. | merge canonical
P12  | Backend framework is FastAPI | FastAPI is the backend framework | merge canonical
P13  | The API limit is 100 requests per minute | Note that the API limit is one hundred requests per minute. | merge canonical
P13  | The API limit is 100 requests per minute | Remember: the API limit is 100 requests per minute! | merge canonical
P15  | preference: I like dark mode | preference: I do not like dark mode | contradicts
P16  | The feature flag is on for EU users | The feature flag is not on for EU users | contradicts
P17  | decision: We will launch on Tuesday | decision: We will not launch on Tuesday | contradicts
P18  | The service is enabled in production | The service is disabled in production | contradicts
P19  | JWT tokens expire after 15 minutes | JWT tokens expire after 60 minutes | contradicts
P19  | JWT tokens expire after fifteen minutes | JWT tokens expire after sixty minutes | contradicts
P20  | Release is planned for March | Release is planned for April | contradicts
P21  | preference: I prefer tabs | preference: I prefer spaces | contradicts
P22  | Alice owns the payments service | Bob owns the payments service | contradicts
P23  | Alice works on payments | Bob works on payments | keep
P23  | We support PostgreSQL | We support MySQL | keep
P24  | decision: We decided to use PostgreSQL | decision: We decided to use MySQL | contradicts
P25  | decision: We use Redis for caching | decision: We use PostgreSQL for storage | keep
P26  | decision: We use PostgreSQL for the app | decision: We use MySQL for the legacy CRM | keep
P27  | decision: We will deploy on Fargate | decision: We moved to Kubernetes | updates open
P28  | decision: We decided to use Acme Widgets | decision: We decided to use Bolt Supplies | keep
P29  | decision: We chose Acme Widgets as supplier | decision: We chose Bolt Supplies as supplier | contradicts
P30  | The user lives in Delhi | The user lives in Mumbai | contradicts
P31  | The user lives in Delhi | The user moved from Delhi to Mumbai | updates resolved
P32  | The API uses gRPC between services | The API uses gRPC | derived_from, first is specific
P32  | The service is enabled | The service is enabled only for EU users | derived_from, second is specific
P33  | Billing depends on auth | Auth depends on billing | keep
P33  | Keep at least 3 replicas | Keep at most 3 replicas | keep
P33  | Use the flag -v | Use the flag -V | keep
P34  | The service runs Python 3.1 | The service runs Python 3.10 | contradicts
P35  | Take the backup before the deploy | Take the backup after the deploy | contradicts
P36  | The budget is $40k | The budget is \u{20ac}40k | contradicts
P36  | The budget is $40k | The budget is $40,000 | merge canonical
P38  | preference: I prefer tabs | preference: [other] I prefer spaces | keep
P38  | preference: I prefer tabs | preference: [other] I prefer tabs | keep
P39  | note: Maybe we should use Kafka | decision: We use Kafka | keep
P39  | question: Do we use Kafka? | decision: We use Kafka | keep
P39  | decision: We use RabbitMQ | decision: We will use Kafka in Q3 | keep
P40  | decision: We use Postgres for our production database | Postgres is fast and reliable | keep
P41  | decision: We use PostgreSQL | decision: We use MySQL again | contradicts
P42  | The app should default to a dark interface | They prefer a low-light theme whenever the product opens | keep
P43  | decision: We chose FastAPI for the service | decision: FastAPI was chosen because of async | keep
P44  | The policy document mentions MySQL as an example | decision: We use PostgreSQL | keep
";

/// The same kinds of rows with other words.
const VARIANTS: &str = "
P05  | Sessions time out after two hours | Sessions time out after 120 minutes | merge canonical
P05  | The upload limit is 2,000 files | The upload limit is two thousand files | merge canonical
P06  | concept: The colour of the header | concept: The color of the header | merge canonical
P08  | Stripe was selected for payments | We selected Stripe for payments | merge canonical
P09  | We run k8s in staging | We run Kubernetes in staging | merge canonical
P10  | The meeting is on Monday at 9 am | The meeting is on Monday at 09:00 | merge canonical
P11  | The service can't read the queue | The service cannot read the queue | merge canonical
P12  | Redis is our cache | Our cache is Redis | merge canonical
P15  | preference: I want notifications | preference: I don't want notifications | contradicts
P16  | Logging is on in staging | Logging is off in staging | contradicts
P17  | We will ship the beta | We won't ship the beta | contradicts
P18  | Guests are allowed in the lab | Guests are not allowed in the lab | contradicts
P18  | The bucket is public | The bucket is private | contradicts
P19  | The plan costs $20 per month | The plan costs $25 per month | contradicts
P19  | The cache holds 500 entries | The cache holds 800 entries | contradicts
P20  | The deadline is March 15 | The deadline is April 2 | contradicts
P20  | The office opens at 9 am | The office opens at 10 am | contradicts
P21  | preference: I prefer light mode | preference: I prefer dark mode | contradicts
P21  | preference: I use Vim | preference: I use Emacs | contradicts
P22  | Dana leads the search team | Erik leads the search team | contradicts
P22  | The owner of the search service is Dana | Erik owns the search service | contradicts
P22  | The search service is owned by Dana | Dana owns the search service | merge canonical
P24  | decision: We use RabbitMQ for events | decision: We use Kafka for events | contradicts
P27  | decision: We use MySQL | decision: We switched to PostgreSQL | updates open
P30  | The office is located in Oslo | The office is located in Bergen | contradicts
P30  | The dashboard is at https://a.example.com | The dashboard is at https://b.example.com | contradicts
P30  | My dog is called Rex | My dog is called Max | contradicts
P31  | decision: We use MySQL | decision: We switched from MySQL to PostgreSQL last month | updates resolved
P31  | decision: We use MongoDB | decision: We're no longer using MongoDB | updates resolved
P31  | decision: We use MongoDB | decision: We stopped using MongoDB | updates resolved
P31  | decision: We use Jenkins | decision: We got rid of Jenkins | updates resolved
P31  | decision: We use Jenkins | decision: We replaced Jenkins with Buildkite | updates resolved
P31  | decision: We use MySQL | decision: We use PostgreSQL instead of MySQL | updates resolved
P31  | JWT tokens expire in 15 minutes | Actually, JWT tokens expire in 60 minutes, not 15. | updates resolved
P31  | The office is in Berlin | The office moved from Berlin to Munich | updates resolved
P31  | The rate limit is 100 requests per minute | The rate limit was raised from 100 to 200 requests per minute | updates resolved
P31  | Alice works on payments | Alice no longer works on payments | updates resolved
P27  | The meeting is on Monday | We moved the meeting to Friday | updates open
P27  | The deadline is February 20 | The deadline moved to March | updates open
P27  | The rate limit is 100 requests per minute | The rate limit was raised to 200 requests per minute | updates open
P32  | We use Redis for caching in production | We use Redis for caching | derived_from, first is specific
P20  | The release is planned for March | The release is planned for March 15 | keep
P20  | We will release the beta on May 1 | We will release the docs on May 2 | keep
P26  | In staging, the timeout is 5 seconds | In production, the timeout is 10 seconds | keep
P22  | The owner of billing is Dana | The owner of search is Erik | keep
P22  | Carol is our CTO | Erik is our CTO | contradicts
P31  | decision: We use Acme Widgets | decision: We replaced Acme Widgets with Bolt Supplies | updates resolved
P31  | The deadline is March 15 | The deadline is April 2, not March 15 | updates resolved
P31  | Bob is the lead of search | Bob is no longer the lead of search | updates resolved
P20  | Deadline: March 15 | The deadline is March 15 | merge canonical
P33  | The server listens on 10.0.0.1 | The server listens on 10.0.0.2 | keep
P33  | The export contains 10 columns | The export contains 12 columns | keep
P33  | Copy data from staging to production | Copy data from production to staging | keep
P33  | All users must log in | Some users must log in | keep
P33  | Users and admins can export | Users or admins can export | keep
P33  | Set LOG_LEVEL before start | Set log_level before start | keep
P34  | We run PostgreSQL 15 | We run PostgreSQL 16 | contradicts
P35  | Increase the timeout for uploads | Decrease the timeout for uploads | contradicts
P35  | Contractors may access the vault | Contractors must not access the vault | contradicts
P39  | If traffic grows we use Kafka | We use RabbitMQ | keep
P39  | We used to use MySQL | We use PostgreSQL | keep
P39  | The release might slip to May 5 | The release is planned for May 2 | keep
P23  | I like Python | I like Rust | keep
P23  | I use Vim | I also use Emacs | keep
P37  | entity: (Alice) A developer in Oslo | entity: (Bob) A developer in Oslo | keep
";

struct Said {
    kind: Kind,
    label: String,
    content: String,
    author: &'static str,
}

fn said(text: &str) -> Said {
    let (kind, text) = match text
        .split_once(": ")
        .and_then(|(word, rest)| Some((word.parse().ok()?, rest)))
    {
        Some((kind, rest)) => (kind, rest),
        None => (Kind::Fact, text),
    };
    let (author, text) = text
        .strip_prefix("[other] ")
        .map_or(("key:a", text), |rest| ("key:b", rest));
    let (label, content) = text
        .strip_prefix('(')
        .and_then(|t| t.split_once(") "))
        .unwrap_or((text, text));
    Said {
        kind,
        label: label.to_owned(),
        content: content.to_owned(),
        author,
    }
}

fn input(said: &Said) -> StatementInput<'_> {
    StatementInput {
        label: &said.label,
        content: &said.content,
        kind: said.kind,
        author: said.author,
        observed_at: NOW,
    }
}

fn outcome(first: &str, second: &str) -> String {
    let (first, second) = (said(first), said(second));
    let (a, b) = (read_statement(&input(&first)), read_statement(&input(&second)));
    match compare((&a, first.kind), (&b, second.kind)) {
        PairOutcome::MergeExact => "merge exact",
        PairOutcome::MergeCanonical => "merge canonical",
        PairOutcome::Contradicts { .. } => "contradicts",
        PairOutcome::Updates { resolved: true, .. } => "updates resolved",
        PairOutcome::Updates { resolved: false, .. } => "updates open",
        PairOutcome::DerivedFrom { new_is_specific: true } => "derived_from, second is specific",
        PairOutcome::DerivedFrom { new_is_specific: false } => "derived_from, first is specific",
        PairOutcome::Keep => "keep",
    }
    .to_owned()
}

fn rows(table: &str) -> Vec<[&str; 4]> {
    table
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let mut cells = line.split(" | ").map(str::trim);
            [(); 4].map(|()| cells.next().unwrap_or_default())
        })
        .collect()
}

fn check(table: &str) {
    let mut wrong = Vec::new();
    for [id, first, second, expected] in rows(table) {
        let found = outcome(first, second);
        if found != expected {
            wrong.push(format!(
                "{id}: {first} / {second}\n     expected {expected}, found {found}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{} rows\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_row_of_the_table_has_its_outcome() {
    check(TABLE);
}

#[test]
fn other_rows_of_the_same_kinds_have_their_outcome() {
    check(VARIANTS);
}

#[test]
fn what_is_not_merged_by_form_is_never_open_to_a_merge_by_meaning() {
    for [id, first, second, expected] in rows(TABLE).into_iter().chain(rows(VARIANTS)) {
        let (a, b) = (said(first), said(second));
        let gates = blocking_gates(&input(&a), &input(&b));
        let merged = expected.starts_with("merge");
        // P42 is the row of true paraphrases: similarity alone decides.
        if id != "P42" {
            assert_eq!(gates.is_empty(), merged, "{id}: {first} / {second}: {gates:?}");
        }
    }
}
