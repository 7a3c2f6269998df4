//! The work of the two commands: look, plan, show or save, say what comes next.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;
use waggle_config::runtime::clock::{Clock as _, System};

use super::report::{self, Line};
use super::{Connect, Disconnect, Which, places, rules, target};
use crate::client::{ClientArgs, is_loopback};
use crate::connect::clients::{ALL, Client, claude_desktop};
use crate::connect::diff;
use crate::connect::file::{self, Change};
use crate::connect::places::Places;
use crate::connect::plan::{self, Removal, State};
use crate::connect::target::{Target, Way};
use crate::failure;

pub(crate) fn connect(args: Connect) -> Result<()> {
    let places = places()?;
    let target = args.target()?;
    let mut lines: Vec<Line> = args
        .which
        .clients(&places)
        .into_iter()
        .map(|client| {
            let job = Job::new(client, &places, &args.which);
            if args.check {
                job.check(&target)
            } else {
                job.connect(&target)
            }
        })
        .collect();
    if args.check {
        try_address(&args.client, &mut lines);
    } else {
        how_to_give_the_key(&args, &target, &mut lines);
        rules::connect(&args.which, &mut lines);
    }
    finish(&lines, &places, args.output, &target.url)?;
    report::outcome(&lines)
}

pub(crate) fn disconnect(args: Disconnect) -> Result<()> {
    let places = places()?;
    // The entry is known by its name and place; what it says does not matter.
    let target = Target {
        url: String::new(),
        variable: "WAGGLE_KEY".to_owned(),
        key: None,
        way: Way::Reference,
        bridge: Default::default(),
    };
    let mut lines: Vec<Line> = args
        .which
        .clients(&places)
        .into_iter()
        .map(|client| Job::new(client, &places, &args.which).disconnect(&target))
        .collect();
    rules::disconnect(&args.which, &mut lines);
    finish(&lines, &places, args.output, "")?;
    report::outcome(&lines)
}

/// Every installed client, for `waggle doctor`.
pub(crate) fn check_all(client: &ClientArgs) -> Result<Vec<Line>> {
    let places = places()?;
    let target = target(client, "WAGGLE_KEY", Way::Reference)?;
    let which = Which {
        clients: Vec::new(),
        all: true,
        project_dir: None,
        rules: None,
        dry_run: true,
    };
    Ok(which
        .clients(&places)
        .into_iter()
        .map(|client| Job::new(client, &places, &which).check(&target))
        .collect())
}

impl Which {
    fn clients(&self, places: &Places) -> Vec<&'static Client> {
        if self.all {
            return ALL.into_iter().filter(|client| client.is_installed(places)).collect();
        }
        let mut once: Vec<&'static Client> = Vec::new();
        for client in &self.clients {
            if !once.iter().any(|known| known.id == client.id) {
                once.push(client);
            }
        }
        once
    }
}

fn finish(lines: &[Line], places: &Places, output: crate::output::OutputArgs, url: &str) -> Result<()> {
    let clients: Vec<_> = lines.iter().map(Line::json).collect();
    let mut data = json!({"clients": clients});
    if !url.is_empty() {
        data["url"] = json!(url);
    }
    output.show(&data, || {
        if lines.is_empty() {
            "no client that we know is installed here\n".to_owned()
        } else {
            report::screen(lines, places)
        }
    })
}

/// One client and its file.
struct Job<'a> {
    client: &'static Client,
    places: &'a Places,
    file: Option<PathBuf>,
    project: Option<&'a Path>,
    dry_run: bool,
}

impl<'a> Job<'a> {
    fn new(client: &'static Client, places: &'a Places, which: &'a Which) -> Self {
        let project = which.project_dir.as_deref();
        Self {
            client,
            places,
            file: client.file(places, project),
            project,
            dry_run: which.dry_run,
        }
    }

    /// The file and its text; what is wrong is a finished line.
    fn read(&self) -> Result<(PathBuf, Option<String>), Box<Line>> {
        let Some(path) = self.file.clone() else {
            let why = format!("{} has no configuration of its own for a project", self.client.name);
            return Err(Box::new(Line::failed(self.client, None, why, failure::USAGE)));
        };
        match file::read(&path) {
            Ok(text) => Ok((path, text)),
            Err(error) => {
                let line = Line::failed(self.client, Some(path), error.to_string(), failure::GENERAL);
                Err(Box::new(line))
            }
        }
    }

    fn check(&self, target: &Target) -> Line {
        let mut line = self.checked(target);
        if line.exit != 0 {
            line.exit = failure::CHECK_FAILED;
        }
        line
    }

    fn checked(&self, target: &Target) -> Line {
        let (path, text) = match self.read() {
            Ok(found) => found,
            Err(line) => return *line,
        };
        let state = match &text {
            None => Ok(State::Absent),
            Some(text) => plan::state(self.client, target, text),
        };
        let state = match state {
            Err(at) => return Line::malformed(self.client, path, at),
            Ok(State::Absent) if self.project.is_none() && !self.client.is_installed(self.places) => {
                State::NotInstalled
            }
            Ok(State::Absent) if self.client.id == claude_desktop::CLIENT.id => State::ByHand,
            Ok(state) => state,
        };
        let mut line = Line::new(self.client, Some(path), state);
        match line.state {
            State::Connected => {}
            State::ByHand => line
                .next
                .push("its connectors are set up inside of the program".to_owned()),
            State::NotInstalled => line.exit = failure::CHECK_FAILED,
            _ => {
                line.exit = failure::CHECK_FAILED;
                line.next.push(format!("`waggle connect {}`", self.client.id));
            }
        }
        line
    }

    fn connect(&self, target: &Target) -> Line {
        if self.client.id == claude_desktop::CLIENT.id && target.way != Way::Bridge {
            let mut line = Line::new(self.client, None, State::ByHand);
            line.next
                .push(claude_desktop::instructions(target, !is_loopback(&target.url)));
            return line;
        }
        let (path, text) = match self.read() {
            Ok(found) => found,
            Err(line) => return *line,
        };
        let secret = target.puts_key_in_file(self.client.reference);
        if let Some(line) = self.refusal(target, secret, &path) {
            return line;
        }
        let before = text.as_deref().unwrap_or_default();
        let after = match plan::connect(self.client, target, before) {
            Ok(after) => after,
            Err(at) => return Line::malformed(self.client, path, at),
        };
        let mut line = self.save(path, text.as_deref(), Some(&after), secret);
        if line.problem.is_none() {
            line.state = match &text {
                _ if !self.dry_run => State::Connected,
                None => State::Absent,
                Some(text) => plan::state(self.client, target, text).unwrap_or(State::Unreadable),
            };
        }
        if secret && line.problem.is_none() {
            let file = line
                .file
                .as_ref()
                .map(|path| self.places.short(path))
                .unwrap_or_default();
            line.warnings.push(format!(
                "the key stands in {file}, mode 0600, because {}; --bridge avoids it",
                if target.way == Way::KeyInFile {
                    "--key-in-file was given".to_owned()
                } else {
                    format!("{} cannot take it from a variable", self.client.name)
                }
            ));
        }
        if line.changed {
            line.next.push(format!("afterwards: {}", self.client.afterwards));
        }
        line
    }

    /// What must not be written, before anything is.
    fn refusal(&self, target: &Target, secret: bool, path: &Path) -> Option<Line> {
        let refuse = |why: String, next: &str| {
            let mut line = Line::failed(self.client, Some(path.to_owned()), why, failure::USAGE);
            line.state = State::Absent;
            line.next.push(next.to_owned());
            Some(line)
        };
        if secret && target.key.is_none() {
            return refuse(
                format!(
                    "{} needs the key in its file, and no key is known here",
                    self.client.name
                ),
                "give --key-file, or set WAGGLE_KEY, or use --bridge",
            );
        }
        if secret && self.project.is_some() && target.way != Way::KeyInFile {
            return refuse(
                format!(
                    "{} would need the key in a file of the project, which others may see",
                    self.client.name
                ),
                "use --bridge, or the user's own file without --project-dir, or say --key-in-file",
            );
        }
        if target.way == Way::Bridge && !target.bridge.arguments.iter().any(|one| one == "--key-file") {
            return refuse(
                "the bridge needs a file with the key".to_owned(),
                "give --key-file (mode 0600)",
            );
        }
        None
    }

    fn disconnect(&self, target: &Target) -> Line {
        let (path, text) = match self.read() {
            Ok(found) => found,
            Err(line) => return *line,
        };
        let Some(text) = text else {
            return Line::new(self.client, Some(path), State::Absent);
        };
        let backups: Vec<String> = file::backups(&path)
            .iter()
            .filter_map(|path| file::read(path).ok().flatten())
            .collect();
        let after = match plan::disconnect(self.client, target, &text, &backups) {
            Ok(Removal::Nothing) => return Line::new(self.client, Some(path), State::Absent),
            Ok(Removal::Text(after)) => Some(after),
            Ok(Removal::Delete) => None,
            Err(at) => return Line::malformed(self.client, path, at),
        };
        let mut line = self.save(path.clone(), Some(&text), after.as_deref(), false);
        // The key is gone, and with it the reason for a private file.
        if line.changed
            && let Err(error) = file::restore_mode(&path)
        {
            line.warnings.push(error.to_string());
        }
        line
    }

    fn save(&self, path: PathBuf, before: Option<&str>, after: Option<&str>, secret: bool) -> Line {
        save(self.client, path, before, after, secret, self.dry_run)
    }
}

/// Makes a change, or shows it.
pub(super) fn save(
    client: &'static Client,
    path: PathBuf,
    before: Option<&str>,
    after: Option<&str>,
    secret: bool,
    dry_run: bool,
) -> Line {
    let mut line = Line::new(client, Some(path.clone()), State::Absent);
    if before == after {
        return line;
    }
    line.diff = hide_keys(&diff::lines(before.unwrap_or_default(), after.unwrap_or_default()));
    if dry_run {
        return line;
    }
    let time = System::new().wall().to_string().replace([':', '.'], "-");
    let change = Change {
        path: &path,
        before,
        after,
        secret,
        time: &time,
    };
    match change.save() {
        Ok(backup) => {
            line.changed = true;
            line.backup = backup;
        }
        Err(error) => {
            line.problem = Some(error.to_string());
            line.exit = failure::GENERAL;
        }
    }
    line
}

/// Keys of ours that a diff would show.
fn hide_keys(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("wg_") {
        let (head, key) = rest.split_at(at);
        let length = key
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
            .unwrap_or(key.len());
        let (key, tail) = key.split_at(length);
        shown.push_str(head);
        let public: Vec<&str> = key.split('_').take(3).collect();
        shown.push_str(&public.join("_"));
        if public.join("_").len() < key.len() {
            shown.push_str("_…");
        }
        rest = tail;
    }
    shown.push_str(rest);
    shown
}

/// A real call for the connected ones, once: they all have the same address.
fn try_address(client: &ClientArgs, lines: &mut [Line]) {
    if !lines.iter().any(|line| line.state == State::Connected) {
        return;
    }
    let tried = client
        .public()
        .and_then(|client| client.tool("memory_capabilities", &json!({})));
    if let Err(error) = tried {
        let failure = failure::Failure::from_error(&error);
        for line in lines.iter_mut().filter(|line| line.state == State::Connected) {
            line.problem = Some(format!("its file is right, but the call failed: {}", failure.what));
            line.exit = failure::CHECK_FAILED;
            line.next.extend(failure.next.clone());
        }
    }
}

fn how_to_give_the_key(args: &Connect, target: &Target, lines: &mut [Line]) {
    use crate::connect::target::Reference;
    if target.way != Way::Reference {
        return;
    }
    let source = match args.client.known().ok().and_then(|known| known.key_file) {
        Some(file) => format!("\"$(cat {})\"", file.display()),
        None => "(the API key)".to_owned(),
    };
    for line in lines.iter_mut().filter(|line| line.exit == 0 && line.changed) {
        match line.client.reference {
            Reference::Nothing => {}
            Reference::Prompt => line.next.push("it will ask for the API key once".to_owned()),
            _ => line.next.push(format!(
                "it takes the key from its environment: export {}={source}",
                target.variable
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_shows_no_key() {
        assert_eq!(
            hide_keys("+ \"Bearer wg_dev_abc_SECRET_chk\", wg_ and wg_dev_a_b_c\n"),
            "+ \"Bearer wg_dev_abc_…\", wg_ and wg_dev_a_…\n"
        );
    }
}
