//! The table of extraction of the memory semantics, row by row.
//!
//! `id | user | assistant | memories | links`. A line break in a message is written `\n`. Memories are parted by ` ; `:
//! a letter for the kind (D F P C E Q N), tags it must have, `!tag` for tags it must not have, and `weak`,
//! `due=DATE`, `from=DATE`, `label="..."`, `content="..."`. Links: `source relationship target [weak]`, exactly these.

use waggle_memory::extract::{Draft, ExtractInput, Extraction, decompose, extract};
use waggle_memory::kind::{Confidence, Kind};
use waggle_memory::read::{PairOutcome, StatementInput, compare, read_statement};
use waggle_memory::time::Millis;

/// Wednesday, 10 February 2027, 12:00 UTC.
const NOW: Millis = Millis(1_802_260_800_000);
const AUTHOR: &str = "key:a";

const TABLE: &str = r#"
E01 | Let's use PostgreSQL. MySQL replication has been painful. | | D database choice:postgresql ; F decision-rationale | 0 depends_on 1
E02 | We decided to use PostgreSQL because MySQL replication is painful. | | D choice:postgresql ; F decision-rationale | 0 depends_on 1
E03 | We chose PostgreSQL over MySQL because MySQL replication has been painful. | | D choice:postgresql rejected:mysql ; F | 0 depends_on 1
E04 | Concurrent writes are blocking us, so let's use PostgreSQL. | | F ; D choice:postgresql | 1 depends_on 0
E05 | The deadline moved to March, so we dropped the GraphQL migration. | | F schedule label="Deadline" ; D negated choice:graphql | 1 depends_on 0
E06 | The team is more familiar with MySQL, so we may switch to MySQL. | | F ; N hedged weak | 1 depends_on 0 weak
E07 | I prefer tabs over spaces. | | P choice:tabs rejected:spaces |
E08 | Remember that my favorite programming language is Python. | | P content="my favorite programming language is Python" |
E09 | PostgreSQL is my go-to database. | | P database choice:postgresql |
E09 | I always use PostgreSQL for this kind of project. | | P database choice:postgresql |
E10 | I always use Vim. My go-to editor is Neovim. | | P choice:vim ; P editor choice:neovim |
E11 | I like Python, but I don't like notebooks. | | P !negated ; P negated |
E12 | I've switched to FastAPI for backend services. | | D backend-framework choice:fastapi |
E13 | We should stick with Next.js for the frontend. | | D frontend-framework choice:next.js !hedged |
E14 | We are using FastAPI for the backend. | | D choice:fastapi |
E15 | We use Redis for caching and PostgreSQL for storage. | | D cache choice:redis ; D choice:postgresql |
E16 | We switched from MySQL to PostgreSQL last month. | | D choice:postgresql previous:mysql !choice:mysql from=2027-01-01 |
E17 | I switched from VS Code to Neovim, and I'm using tmux now too. | | D choice:neovim previous:vs-code ; D choice:tmux |
E18 | We're no longer using MongoDB. | | D negated choice:mongodb |
E19 | Maybe we should use Kafka later. | | N hedged weak |
E19 | I think we should probably go with Redis. | | N hedged weak |
E20 | Unless the team objects, let's use Terraform. | | N conditional weak |
E20 | If traffic doubles we should move to Kafka. | | N conditional weak |
E21 | We will migrate to Kubernetes in Q3. | | D planned choice:kubernetes due=2027-09-30 |
E22 | What database should we use? | You could use SQLite. | Q ; N suggestion speaker:assistant choice:sqlite weak | 1 relates_to 0 weak
E23 | I'd like to know if it is raining | | Q |
E24 | What should we do? | I'll remember that we use PostgreSQL. We decided to use Redis for caching. | D cache choice:redis speaker:assistant |
E25 | JWT tokens expire in 15 minutes. | | F label="JWT expiry" |
E25 | The API rate limit is 100 requests per minute. | | F label="API rate limit" |
E26 | Actually, JWT tokens expire in 60 minutes, not 15. | | F label="JWT expiry" |
E27 | Our deadline is March 15 and the budget is 40k. | | F label="Deadline" due=2027-03-15 ; F label="Budget" |
E28 | My dog is called Rex and I live in Oslo. | | F personal ; F personal |
E28 | I'm allergic to peanuts and my birthday is May 3. | | F personal ; F personal |
E29 | We need SSO support for enterprise customers. | | C requirement |
E30 | The service must never log raw API keys. | | C constraint negated |
E30 | Never deploy on Fridays. | | C constraint negated |
E30 | All timestamps must be stored in UTC. | | C constraint !negated |
E31 | We can't ship before the security review is done. | | C constraint |
E31 | We can't ship before the security review is done. The security review is planned for May. | | C constraint ; F | 0 depends_on 1
E32 | Version 3.10 is required; 3.1 is not supported. | | C requirement ; C constraint negated |
E33 | TODO: add retry logic to the uploader. | | N todo |
E34 | I want a report by tomorrow. | | N todo due=2027-02-11 |
E35 | We moved the meeting to Friday. | | F schedule |
E36 | We chose Acme Widgets as supplier. | | D supplier choice:acme-widgets |
E37 | Alice Johnson leads the Billing Platform team. | | F role ; E label="Alice Johnson" ; E label="Billing Platform" | 0 relates_to 1, 0 relates_to 2
E38 | Please look at src/waggle/server.py and fix the OAuthHandler bug. | | E code-path label="src/waggle/server.py" ; E label="OAuthHandler" | 1 relates_to 0
E39 | Let's use FastAPI in src/server.py. | | D choice:fastapi ; E code-path | 0 relates_to 1
E40 | - Use Redis for cache\n- Use Kafka for events\n- Avoid SOAP | | D cache choice:redis ; D choice:kafka ; P negated |
E41 | The office moved from Berlin to Munich. | | F previous:berlin |
E42 | I love this! | | |
E42 | OK, let's do that. | | |
E42 | We decided. | | |
E42 | Thanks, looks great! | You're welcome. | |
E42 | ```\nDROP TABLE users;\n```\nPlease explain. | | |
E43 | > We should use MySQL\nNo, we stay with PostgreSQL. | | D choice:postgresql !choice:mysql |
E44 | Wir benutzen PostgreSQL für die Produktion. | | |
E45 | データベースはPostgreSQLを使います。 | | |
E46 | Nous préférons les tabulations. I prefer spaces. | | P choice:spaces |
E47 | The deploy key is sk-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN. I prefer dark mode. | | P |
E48 | Our staging API is at https://staging.example.com/v2. | | F content="Our staging API is at https://staging.example.com/v2" |
E49 | | How can I help? | |
"#;

const DECOMPOSED: &str = r#"
E50 | The billing service depends on the auth API. The auth API requires Redis. We will use Kafka for events. | | F ; F ; D planned choice:kafka | 0 depends_on 1
E51 | The retry policy was updated to five attempts. The retry policy replaces the old single attempt policy. | | F ; F | 1 relates_to 0 weak
E52 | - Alice prefers dark mode\n- Bob owns the payments service\n- Release is on May 3 | Team notes | P ; F role ; F schedule ; E label="Bob" ; C label="Team notes" | 0 part_of 4, 1 part_of 4, 2 part_of 4, 3 part_of 4, 1 relates_to 3
"#;

/// The same kinds of rows with other words.
const VARIANTS: &str = r#"
E01 | Let's go with Kafka. RabbitMQ clustering is flaky. | | D message-queue choice:kafka ; F decision-rationale | 0 depends_on 1
E02 | We picked Terraform because Pulumi state handling is fragile. | | D choice:terraform ; F decision-rationale | 0 depends_on 1
E02 | Since MySQL replication is painful, we decided to use PostgreSQL. | | F ; D choice:postgresql | 1 depends_on 0
E03 | We use Vite instead of Webpack. | | D choice:vite rejected:webpack |
E05 | The budget was cut to 20k, so we cancelled the Datadog rollout. | | F ; D negated choice:datadog | 1 depends_on 0
E07 | I prefer dark mode. | | P choice:dark-mode |
E08 | Note that my favorite editor is Helix. | | P editor choice:helix |
E11 | I enjoy pair programming but I hate long meetings. | | P !negated ; P negated |
E12 | We have migrated to Buildkite for CI. | | D ci choice:buildkite |
E16 | We replaced Jenkins with GitHub Actions in January. | | D choice:github-actions previous:jenkins from=2027-01-01 |
E18 | We stopped using Jenkins. | | D negated choice:jenkins |
E18 | We got rid of Elasticsearch. | | D negated choice:elasticsearch |
E19 | Perhaps we could try Svelte. | | N hedged weak |
E20 | If the tests pass we will release on Monday. | | N conditional weak |
E21 | We are going to move to Fargate next quarter. | | D planned choice:fargate due=2027-06-30 |
E22 | Which queue should we pick? | I'd recommend RabbitMQ. | Q ; N suggestion choice:rabbitmq weak | 1 relates_to 0 weak
E23 | Do we still support Internet Explorer? | | Q |
E25 | The upload limit is 25 MB. | | F label="Upload limit" |
E25 | Passwords expire after 90 days. | | F label="Passwords expiry" |
E27 | The launch is on April 2 and the price is $20 per month. | | F schedule due=2027-04-02 ; F |
E28 | I have two kids and I work at Acme. | | F personal ; F personal |
E29 | We require audit logs for every change. | | C requirement |
E30 | Customer data must not leave the EU. | | C constraint negated |
E30 | Always run the tests before a release. | | C constraint |
E31 | We cannot launch until the legal review is finished. | | C constraint |
E33 | todo: rotate the logs weekly | | N todo |
E34 | I need the slides by Friday. | | N todo due=2027-02-12 |
E35 | The release was pushed to May 12. | | F schedule |
E36 | We picked Bolt Supplies as vendor. | | D vendor choice:bolt-supplies |
E37 | Dana Smith manages the Search team. | | F role ; E label="Dana Smith" ; E label="Search" | 0 relates_to 1, 0 relates_to 2
E38 | Can you check lib/parser.rs? | | E code-path label="lib/parser.rs" |
E42 | Sounds good, thank you! | Great! Let me know if you need anything else. | |
E42 | Please fix the failing test. | | |
E42 | Hello there! | Hi, how can I help you today? | |
E42 | You are right. | I apologize for the confusion. | |
E42 | ok | 2027-01-02T10:00:00 started server\nERROR could not connect | |
E44 | Usamos PostgreSQL para la base de datos. | | |
E44 | We gebruiken PostgreSQL voor de productie. | | |
E47 | The password: hunter2secret1 is for staging. I prefer light mode. | | P choice:light-mode |
E48 | The wiki lives at https://wiki.example.com/a. | | F |
E27 | Deadline: March 15 | | F label="Deadline" due=2027-03-15 |
E30 | No deployments on Fridays. | | C constraint negated |
E33 | Don't forget to update the changelog. | | N todo |
E33 | Remind me to call Alice tomorrow. | | N todo due=2027-02-11 |
E37 | Bob is no longer the lead of the search team. | | F role negated ; E label="Bob" | 0 relates_to 1
E15 | We chose Rust for performance, Go for tooling and Python for scripts. | | D choice:rust ; D choice:go ; D choice:python |
E12 | We host everything on AWS. | | D cloud choice:aws |
E11 | Let's not use MongoDB. | | D negated choice:mongodb |
E03 | Instead of MySQL we use PostgreSQL. | | D choice:postgresql rejected:mysql |
E08 | SSO means single sign-on. | | C |
E40 | Please use PostgreSQL. | | D choice:postgresql |
E37 | Bolt Supplies is our new supplier. | | F role ; E label="Bolt Supplies" | 0 relates_to 1
E28 | Alice's birthday is June 3. | | F !schedule label="Alice's birthday" |
E44 | Der Server ist langsam. | | |
E44 | Il nostro server usa Redis in produzione. | | |
E46 | Serwer jest wolny. The office is in Oslo. | | F |
E13 | The API uses gRPC between services. | | F |
E40 | * Use Axum for the API\n* Use React for the UI | | D choice:axum ; D choice:react |
E30 | Use PostgreSQL. | Never store secrets in git. | D choice:postgresql |
"#;

/// Rows of [`TABLE`] and [`DECOMPOSED`] that are known not to hold yet; the test fails when one of them does.
const KNOWN_GAPS: &[&str] = &[];

fn date(at: Option<Millis>) -> String {
    at.map(|at| at.to_string().chars().take(10).collect())
        .unwrap_or_default()
}

fn letter(kind: Kind) -> &'static str {
    match kind {
        Kind::Decision => "D",
        Kind::Fact => "F",
        Kind::Preference => "P",
        Kind::Concept => "C",
        Kind::Entity => "E",
        Kind::Question => "Q",
        Kind::Note => "N",
    }
}

/// What a draft lacks of `expected`.
fn lacks(draft: &Draft, expected: &str) -> Option<String> {
    let (mut words, mut rest) = (Vec::new(), expected.trim());
    while !rest.is_empty() {
        let end = match rest
            .find('"')
            .filter(|q| rest.get(..*q).is_some_and(|t| !t.contains(' ')))
        {
            Some(open) => rest
                .get(open + 1..)
                .and_then(|t| t.find('"'))
                .map_or(rest.len(), |close| open + close + 2),
            None => rest.find(' ').unwrap_or(rest.len()),
        };
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after.trim_start();
    }
    for (i, word) in words.iter().enumerate() {
        let fits = if i == 0 {
            *word == letter(draft.kind)
        } else if *word == "weak" {
            draft.confidence == Confidence::Weak
        } else if let Some(tag) = word.strip_prefix('!') {
            !draft.tags.iter().any(|t| t == tag)
        } else if let Some(day) = word.strip_prefix("due=") {
            date(draft.due) == day
        } else if let Some(day) = word.strip_prefix("from=") {
            date(draft.valid_from) == day
        } else if let Some(label) = word.strip_prefix("label=") {
            draft.label == label.trim_matches('"')
        } else if let Some(content) = word.strip_prefix("content=") {
            draft.content == content.trim_matches('"')
        } else {
            draft.tags.iter().any(|t| t == word)
        };
        if !fits {
            return Some((*word).to_owned());
        }
    }
    if !words.contains(&"weak") && draft.confidence == Confidence::Weak {
        return Some("not weak".to_owned());
    }
    None
}

fn links_of(found: &Extraction) -> Vec<String> {
    let mut links: Vec<String> = found
        .links
        .iter()
        .map(|l| {
            let weak = if l.confidence == Confidence::Weak { " weak" } else { "" };
            format!("{} {} {}{weak}", l.source, l.relationship, l.target)
        })
        .collect();
    links.sort();
    links
}

fn show(found: &Extraction) -> String {
    let mut out = String::new();
    for d in &found.drafts {
        out += &format!(
            "\n       {} {:?} {:?} {:?} due={} from={}",
            letter(d.kind),
            d.content,
            d.label,
            d.tags,
            date(d.due),
            date(d.valid_from)
        );
    }
    format!("{out}\n       links: {}", links_of(found).join(", "))
}

fn problems(table: &str, run: impl Fn(&str, &str) -> Extraction) -> Vec<(String, String)> {
    let mut wrong = Vec::new();
    for line in table.lines().filter(|l| !l.trim().is_empty()) {
        let cells: Vec<String> = line.split('|').map(|c| c.trim().replace("\\n", "\n")).collect();
        let [id, user, assistant, memories, links] = cells.as_slice() else {
            panic!("a row has five cells: {line}");
        };
        let found = run(user, assistant);
        let expected: Vec<&str> = memories.split(" ; ").filter(|m| !m.trim().is_empty()).collect();
        let mut lacking: Vec<String> = found
            .drafts
            .iter()
            .zip(&expected)
            .filter_map(|(d, e)| lacks(d, e).map(|w| format!("{e:?} lacks {w}")))
            .collect();
        if found.drafts.len() != expected.len() {
            lacking.push(format!("{} memories", found.drafts.len()));
        }
        let mut expected: Vec<&str> = links.split(',').map(str::trim).filter(|l| !l.is_empty()).collect();
        expected.sort_unstable();
        if links_of(&found) != expected {
            lacking.push(format!("links {expected:?}"));
        }
        if !lacking.is_empty() {
            wrong.push((
                id.clone(),
                format!(
                    "{id}: {user:?} {assistant:?}\n     {}{}",
                    lacking.join("; "),
                    show(&found)
                ),
            ));
        }
    }
    wrong
}

fn observe(user: &str, assistant: &str) -> Extraction {
    extract(&ExtractInput {
        user_message: user,
        assistant_response: assistant,
        author: AUTHOR,
        observed_at: NOW,
    })
}

fn assert_none(wrong: Vec<(String, String)>) {
    let text: Vec<String> = wrong.into_iter().map(|(_, text)| text).collect();
    assert!(text.is_empty(), "{} rows\n{}", text.len(), text.join("\n"));
}

#[test]
fn every_row_of_the_table_has_its_memories_and_links() {
    let mut wrong = problems(TABLE, observe);
    wrong.extend(problems(DECOMPOSED, |content, context| {
        decompose(content, context, AUTHOR, NOW).unwrap_or_default()
    }));
    let failing: Vec<&str> = KNOWN_GAPS
        .iter()
        .copied()
        .filter(|gap| !wrong.iter().any(|(id, _)| id == gap))
        .collect();
    assert!(failing.is_empty(), "no longer gaps: {failing:?}");
    assert_none(
        wrong
            .into_iter()
            .filter(|(id, _)| !KNOWN_GAPS.contains(&id.as_str()))
            .collect(),
    );
}

#[test]
fn other_rows_of_the_same_kinds_have_their_memories_and_links() {
    assert_none(problems(VARIANTS, observe));
}

/// What the first draft of `said` does to a stored statement.
fn effect(stored: (&str, Kind), said: &str) -> PairOutcome {
    let old = read_statement(&StatementInput {
        label: stored.0,
        content: stored.0,
        kind: stored.1,
        author: AUTHOR,
        observed_at: NOW,
    });
    let found = observe(said, "ok");
    let outcomes = found
        .drafts
        .iter()
        .map(|d| compare((&old, stored.1), (&d.statement, d.kind)));
    outcomes
        .into_iter()
        .find(|o| *o != PairOutcome::Keep)
        .unwrap_or(PairOutcome::Keep)
}

#[test]
fn effects_of_the_table_on_stored_memories() {
    let resolved = [
        (
            "E16",
            "We use MySQL",
            Kind::Decision,
            "We switched from MySQL to PostgreSQL last month.",
        ),
        (
            "E18",
            "We use MongoDB",
            Kind::Decision,
            "We're no longer using MongoDB.",
        ),
        (
            "E26",
            "JWT tokens expire in 15 minutes",
            Kind::Fact,
            "Actually, JWT tokens expire in 60 minutes, not 15.",
        ),
        (
            "E41",
            "The office is in Berlin",
            Kind::Fact,
            "The office moved from Berlin to Munich.",
        ),
        (
            "E51",
            "The retry policy is a single attempt",
            Kind::Fact,
            "The retry policy replaces the old single attempt policy.",
        ),
    ];
    for (id, stored, kind, said) in resolved {
        assert!(
            matches!(
                effect((stored, kind), said),
                PairOutcome::Updates { resolved: true, .. }
            ),
            "{id}: {:?}",
            effect((stored, kind), said)
        );
    }
    let open = [
        (
            "E05",
            "The deadline is February 20",
            Kind::Fact,
            "The deadline moved to March, so we dropped the GraphQL migration.",
        ),
        (
            "E12",
            "I use Django for backend services",
            Kind::Decision,
            "I've switched to FastAPI for backend services.",
        ),
        (
            "E35",
            "The meeting is on Thursday",
            Kind::Fact,
            "We moved the meeting to Friday.",
        ),
    ];
    for (id, stored, kind, said) in open {
        assert!(
            matches!(
                effect((stored, kind), said),
                PairOutcome::Updates { resolved: false, .. }
            ),
            "{id}: {:?}",
            effect((stored, kind), said)
        );
    }
    let nothing = [
        (
            "E06",
            "We use PostgreSQL",
            Kind::Decision,
            "The team is more familiar with MySQL, so we may switch to MySQL.",
        ),
        (
            "E19",
            "We use RabbitMQ",
            Kind::Decision,
            "Maybe we should use Kafka later.",
        ),
        (
            "E21",
            "We deploy on Fargate",
            Kind::Decision,
            "We will migrate to Kubernetes in Q3.",
        ),
        (
            "E15",
            "We use Memcached for sessions",
            Kind::Decision,
            "We use Redis for caching and PostgreSQL for storage.",
        ),
    ];
    for (id, stored, kind, said) in nothing {
        assert_eq!(effect((stored, kind), said), PairOutcome::Keep, "{id}");
    }
}

#[test]
fn memories_of_one_call_conflict_only_where_the_table_says_so() {
    for (said, conflict) in [
        ("I always use Vim. My go-to editor is Neovim.", true),
        (
            "We chose PostgreSQL over MySQL because MySQL replication has been painful.",
            false,
        ),
        ("I like Python, but I don't like notebooks.", false),
        ("We use Redis for caching and PostgreSQL for storage.", false),
        ("I switched from VS Code to Neovim, and I'm using tmux now too.", false),
        ("- Use Redis for cache\n- Use Kafka for events\n- Avoid SOAP", false),
        (
            "The retry policy was updated to five attempts. The retry policy replaces the old single attempt policy.",
            false,
        ),
    ] {
        let found = observe(said, "ok");
        let mut outcomes = Vec::new();
        for (i, new) in found.drafts.iter().enumerate() {
            for old in found.drafts.iter().take(i) {
                outcomes.push(compare((&old.statement, old.kind), (&new.statement, new.kind)));
            }
        }
        let found = outcomes
            .iter()
            .any(|o| matches!(o, PairOutcome::Contradicts { .. } | PairOutcome::Updates { .. }));
        assert_eq!(found, conflict, "{said}: {outcomes:?}");
    }
}

#[test]
fn the_assistant_never_closes_anything() {
    let old = read_statement(&StatementInput {
        label: "db",
        content: "We use MongoDB",
        kind: Kind::Decision,
        author: AUTHOR,
        observed_at: NOW,
    });
    for said in [
        "We're no longer using MongoDB.",
        "We switched from MongoDB to PostgreSQL.",
    ] {
        let found = observe("", said);
        for draft in &found.drafts {
            let outcome = compare((&old, Kind::Decision), (&draft.statement, draft.kind));
            assert!(
                !matches!(outcome, PairOutcome::Updates { resolved: true, .. }),
                "{said}: {outcome:?}"
            );
        }
    }
}

#[test]
fn a_secret_is_counted_and_in_no_draft() {
    let secret = "sk-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN";
    let found = observe(&format!("The deploy key is {secret}. I prefer dark mode."), "");
    assert_eq!(found.redactions, 1);
    assert!(!format!("{found:?}").contains("abcdefghijklmnop"));
}
