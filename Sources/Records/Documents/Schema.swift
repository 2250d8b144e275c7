import Console
import FoundationEssentials
import Reachability

/// The JSON Schema (draft 2020-12) of every record and document that this version writes.
package enum Schema {
    /// The schema of one member.
    package indirect enum Node {
        case text(String)
        case date(String)
        case enumeration([String], String)
        case constant(String)
        case integer(String)
        case number(String)
        case flag(String)
        case null
        case array(Node, String)
        case object([(name: String, node: Node)], optional: [(name: String, node: Node)] = [])
        case facts(String)
        /// An object whose members are texts.
        case texts(String)
        case reference(String)
        /// The schema of the node or null.
        case nullable(Node)
    }

    /// All types of records: those of the monitor's streams, and `transfer`.
    package static let records = Record.Kind.allCases.map(\.rawValue) + ["transfer"]
    /// The documents of commands without a stream.
    package static let documents = [
        "status", "probe_summary", "why", "why_targets", "service_status", "history", "report", "reload",
    ]
    package static let identifier = "urn:netwatch:schema:v\(RecordFormat.version)"

    package static func encode() -> [UInt8] {
        var writer = JSONWriter(isIndented: true)
        writer.object { writer in
            writer.member("$schema", "https://json-schema.org/draft/2020-12/schema")
            writer.member("$id", identifier)
            writer.member("title", "netwatch records and documents")
            writer.member(
                "description",
                "One line of a stream (netwatch watch, record, replay, get with --json), or the document of netwatch status, probe, why, history or report --json, or of the service's API. "
                    + "Additions do not raise v: readers ignore types, keys and values that they do not know.")
            writer.key("anyOf")
            writer.array { writer in
                for name in records + documents { write(.reference(name), to: &writer) }
            }
            writer.key("$defs")
            writer.object { writer in
                for (name, node) in definitions {
                    writer.key(text: name)
                    write(node, to: &writer)
                }
            }
        }
        return writer.bytes
    }

    private static func write(_ node: Node, to writer: inout JSONWriter) {
        if case .nullable(let inner) = node {
            writer.object { writer in
                writer.key("anyOf")
                writer.array { writer in
                    write(inner, to: &writer)
                    write(.null, to: &writer)
                }
            }
            return
        }
        writer.object { write(contentOf: node, to: &$0) }
    }

    private static func write(contentOf node: Node, to writer: inout JSONWriter) {
        switch node {
        case .text(let meaning): write(type: "string", meaning, to: &writer)
        case .date(let meaning):
            write(type: "string", meaning, to: &writer)
            writer.member("format", "date-time")
        case .enumeration(let values, let meaning):
            write(type: "string", meaning, to: &writer)
            writer.member("enum", values)
        case .constant(let text): writer.member("const", text)
        case .integer(let meaning): write(type: "integer", meaning, to: &writer)
        case .number(let meaning): write(type: "number", meaning, to: &writer)
        case .flag(let meaning): write(type: "boolean", meaning, to: &writer)
        case .null: writer.member("type", "null")
        case .array(let element, let meaning):
            write(type: "array", meaning, to: &writer)
            writer.key("items")
            write(element, to: &writer)
        case .object(let members, let optional):
            writer.member("type", "object")
            writer.key("properties")
            writer.object { writer in
                for (name, node) in members + optional {
                    writer.key(text: name)
                    write(node, to: &writer)
                }
            }
            writer.member("required", members.map(\.name))
        case .facts(let meaning):
            write(type: "object", meaning, to: &writer)
            writer.key("additionalProperties")
            writer.object { writer in
                writer.member("type", ["string", "integer", "boolean", "array"])
                // Applies to arrays only (JSON Schema 2020-12, Validation, section 6.4).
                writer.key("items")
                writer.object { $0.member("type", "string") }
            }
        case .texts(let meaning):
            write(type: "object", meaning, to: &writer)
            writer.key("additionalProperties")
            writer.object { $0.member("type", "string") }
        case .reference(let name): writer.member("$ref", "#/$defs/\(name)")
        case .nullable(let inner): write(contentOf: inner, to: &writer)
        }
    }

    private static func write(type: String, _ meaning: String, to writer: inout JSONWriter) {
        writer.member("type", type)
        if !meaning.isEmpty { writer.member("description", meaning) }
    }
}
