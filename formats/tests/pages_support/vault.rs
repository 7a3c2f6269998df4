//! Vaults of those graphs, written and read back.

use std::collections::BTreeMap;
use std::io::Cursor;

use waggle_formats::graph::Graph;
use waggle_formats::vault::{
    self, ArchiveError, ArchiveLimits, BASE_PATH, Change, Conflict, Importer, Plan, Vault, VaultOptions,
};
use waggle_memory::id::TenantId;
use waggle_memory::kind::Relationship;
use waggle_memory::record::MemoryRecord;

use super::{graph, link, memory, memory_id, tenant};

pub fn export(graph: &Graph) -> Vault {
    let tenant = tenant();
    let options = VaultOptions {
        tenant: &tenant,
        read_at: "1:42",
    };
    vault::write(graph, options).unwrap()
}

pub fn import_as(tenant: &TenantId, files: &BTreeMap<String, String>, graph: &Graph) -> Plan {
    let mut importer = Importer::new(tenant, graph);
    let json = serde_json::to_string(files).unwrap();
    vault::read_json(&json, &ArchiveLimits::UPLOAD, &mut importer).unwrap();
    importer.finish()
}

pub fn import(files: &BTreeMap<String, String>, graph: &Graph) -> Plan {
    import_as(&tenant(), files, graph)
}

/// The files after a replacement in the file of memory `number`. It must be there.
pub fn edited(vault: &Vault, number: u16, from: &str, to: &str) -> BTreeMap<String, String> {
    let id = memory_id(number).to_string();
    let mut files = vault.files.clone();
    let (path, text) = files.iter_mut().find(|(path, _)| path.contains(&id)).unwrap();
    assert!(text.contains(from), "{path} has no {from:?}:\n{text}");
    *text = text.replacen(from, to, 1);
    files
}

pub fn without_base(mut files: BTreeMap<String, String>) -> BTreeMap<String, String> {
    files.remove(BASE_PATH).unwrap();
    files
}

pub fn only_update(plan: &Plan) -> &vault::UpdateMemory {
    match plan.changes.as_slice() {
        [Change::UpdateMemory(update)] => update,
        other => panic!("{other:#?}"),
    }
}

pub fn only_conflict(plan: &Plan) -> &Conflict {
    match plan.changes.as_slice() {
        [Change::Conflict(conflict)] => conflict,
        other => panic!("{other:#?}"),
    }
}

pub fn three() -> (Vec<MemoryRecord>, Graph) {
    let memories = vec![
        memory(1, "Ledger uses Postgres", "The ledger uses Postgres 16."),
        memory(2, "Audit needs SQL", "The audit needs SQL reports."),
        memory(3, "Cache is Redis", "The cache is Redis."),
    ];
    let links = [
        link(1, 1, 2, Relationship::DependsOn),
        link(2, 3, 1, Relationship::RelatesTo),
        link(3, 3, 2, Relationship::Contradicts),
    ];
    let graph = graph(&memories, &links);
    (memories, graph)
}

pub fn read_zip(bytes: Vec<u8>, limits: &ArchiveLimits, graph: &Graph) -> Result<Plan, ArchiveError> {
    let tenant = tenant();
    let mut importer = Importer::new(&tenant, graph);
    vault::read_zip(Cursor::new(bytes), limits, &mut importer)?;
    Ok(importer.finish())
}
