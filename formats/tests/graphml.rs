//! GraphML, read again by a real XML reader.

#![allow(clippy::unwrap_used, reason = "a test")]

mod generate;

use std::collections::{BTreeMap, BTreeSet};

use generate::Draw;
use quick_xml::events::Event;
use quick_xml::{Reader, XmlVersion};
use waggle_formats::error::WriteError;
use waggle_formats::graphml::{Summary, Writer};
use waggle_memory::record::Record;

#[derive(Debug, Default)]
struct Graph {
    directed: bool,
    keys: BTreeMap<String, String>,
    nodes: BTreeMap<String, BTreeMap<String, String>>,
    edges: Vec<(String, String, BTreeMap<String, String>)>,
}

fn write(records: &[Record]) -> (String, Summary) {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes).unwrap();
    records.iter().for_each(|record| writer.record(record).unwrap());
    let summary = writer.finish().unwrap();
    (String::from_utf8(bytes).unwrap(), summary)
}

fn read(xml: &str) -> Graph {
    let mut reader = Reader::from_str(xml);
    let mut graph = Graph::default();
    let mut at: Option<(bool, String)> = None;
    let mut text: Option<(String, String)> = None;
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) | Event::Empty(tag) => {
                let attributes: BTreeMap<String, String> = tag
                    .attributes()
                    .map(|attribute| {
                        let attribute = attribute.unwrap();
                        let value = attribute.normalized_value(XmlVersion::default()).unwrap().into_owned();
                        (attribute.key.as_ref().to_owned(), value)
                    })
                    .collect();
                match tag.name().as_ref() {
                    "graph" => graph.directed = attributes["edgedefault"] == "directed",
                    "key" => {
                        let name = format!("{} {}", attributes["for"], attributes["attr.name"]);
                        graph.keys.insert(attributes["id"].clone(), name);
                    }
                    "node" => {
                        graph.nodes.insert(attributes["id"].clone(), BTreeMap::new());
                        at = Some((true, attributes["id"].clone()));
                    }
                    "edge" => {
                        let ends = (attributes["source"].clone(), attributes["target"].clone());
                        graph.edges.push((ends.0, ends.1, BTreeMap::new()));
                        at = Some((false, String::new()));
                    }
                    "data" => text = Some((attributes["key"].clone(), String::new())),
                    _ => {}
                }
            }
            Event::Text(part) => {
                if let Some((_, text)) = &mut text {
                    text.push_str(&part.xml10_content());
                }
            }
            Event::GeneralRef(reference) => {
                let character = match reference.resolve_char_ref().unwrap() {
                    Some(character) => character,
                    None => match &*reference.xml10_content() {
                        "amp" => '&',
                        "lt" => '<',
                        "gt" => '>',
                        other => panic!("{other}"),
                    },
                };
                text.as_mut().unwrap().1.push(character);
            }
            Event::End(tag) if tag.name().as_ref() == "data" => {
                let (key, value) = text.take().unwrap();
                let name = graph.keys[&key].clone();
                let values = match at.as_ref().unwrap() {
                    (true, id) => graph.nodes.get_mut(id).unwrap(),
                    (false, _) => &mut graph.edges.last_mut().unwrap().2,
                };
                values.insert(name.split(' ').nth(1).unwrap().to_owned(), value);
            }
            Event::Eof => return graph,
            _ => {}
        }
    }
}

fn shown(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c < ' ' && !"\t\n\r".contains(c) {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

#[test]
fn every_memory_and_link_is_read_back_and_no_link_hangs_loose() {
    let mut links = 0;
    for seed in 0..100 {
        let records = Draw::new(seed).graph();
        let (xml, summary) = write(&records);
        assert_eq!(write(&records).0, xml);
        let graph = read(&xml);
        assert!(graph.directed);
        let ids: BTreeSet<&String> = graph.nodes.keys().collect();
        for (source, target, _) in &graph.edges {
            assert!(ids.contains(source) && ids.contains(target));
        }
        let mut edges = graph.edges.iter();
        for record in &records {
            match record {
                Record::Memory(record) => {
                    let memory = &record.memory;
                    let node = &graph.nodes[&memory.id.to_string()];
                    assert_eq!(node["label"], shown(&memory.label));
                    assert_eq!(node["content"], shown(&memory.content));
                    assert_eq!(node["tags"], shown(&memory.tags.join("\u{1f}")));
                    assert_eq!(node["node_type"], memory.kind.word());
                    assert_eq!(node.get("valid_to"), memory.valid_to.map(|at| at.to_string()).as_ref());
                    assert_eq!(node["version"], memory.version.to_string());
                }
                Record::Link(link) => {
                    let (source, _, edge) = edges.next().unwrap();
                    assert_eq!(*source, link.source.to_string());
                    assert_eq!(edge["relationship"], link.relationship.word());
                    let weight: f64 = edge["weight"].parse().unwrap();
                    assert!((weight * 1000.0 - f64::from(link.weight_thousandths)).abs() < 0.001);
                    let state = link
                        .resolution
                        .as_ref()
                        .map(|r| if r.resolved { "resolved" } else { "open" });
                    assert_eq!(edge.get("state").map(String::as_str), state);
                    links += 1;
                }
                _ => {}
            }
        }
        assert_eq!(summary.counts.edges, u64::try_from(graph.edges.len()).unwrap());
        assert_eq!(summary.bytes, u64::try_from(xml.len()).unwrap());
    }
    assert!(links > 20);
}

#[test]
fn forbidden_characters_are_replaced_and_the_others_kept() {
    let mut record = Draw::new(1).memory();
    record.memory.content = "a\u{0}b\u{b}c\u{1f}d\u{fffe}e\tf\ng\rh\u{7f}i<&>\"']]>j".to_owned();
    let id = record.memory.id.to_string();
    let (xml, _) = write(&[Record::Memory(Box::new(record))]);
    assert_eq!(
        read(&xml).nodes[&id]["content"],
        "a\u{fffd}b\u{fffd}c\u{fffd}d\u{fffd}e\tf\ng\rh\u{7f}i<&>\"']]>j"
    );
}

#[test]
fn a_link_without_an_end_is_refused() {
    let mut draw = Draw::new(2);
    let (here, away) = (draw.memory(), draw.memory());
    let link = draw.link(here.memory.id, away.memory.id);
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.record(&Record::Memory(Box::new(here))).unwrap();
    assert!(matches!(
        writer.record(&Record::Link(Box::new(link))),
        Err(WriteError::Dangling(_))
    ));
}
