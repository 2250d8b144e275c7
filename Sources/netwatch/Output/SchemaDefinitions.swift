import Console
import FoundationEssentials
import Reachability

extension Schema {
    typealias Members = [(name: String, node: Node)]

    /// The keys of each record by its type, and the parts that they share, by name.
    static var definitions: Members {
        [
            ("hello", record(.hello, hello)),
            ("path", record(.path, path)),
            ("target", record(.target, target)),
            ("probe", record(.probe, probe)),
            (
                "resync",
                record(.resync, [("reason", .words(ResyncReason.allCases.map(\.rawValue), "Why the kernel was asked anew"))])
            ),
            ("gap", record(.gap, gap)),
            ("transfer", record(named: "transfer", transfer)),
            ("status", status),
            ("path_state", .object(path)),
            ("interface", interface),
            ("cause", cause),
        ]
    }

    private static func record(_ kind: Record.Kind, _ members: Members) -> Node { record(named: kind.rawValue, members) }

    private static func record(named type: String, _ members: Members) -> Node {
        let common: Members = [
            ("v", .integer("The version of this format")),
            ("seq", .integer("From 0, without holes")),
            ("ts", .date("When the input that caused it was read, UTC, milliseconds")),
            ("mono_ns", .integer("The same on CLOCK_MONOTONIC, nanoseconds")),
            ("type", .constant(type)),
        ]
        let superseded = Node.integer("How many records were dropped before this one because the reader did not keep up")
        return .object(common + members, optional: [("superseded", superseded)])
    }

    private static var hello: Members {
        [
            ("version", .text("The program's version")),
            ("boot_id", .text("/proc/sys/kernel/random/boot_id")),
            (
                "netns",
                .object([
                    ("name", .nullable(.text("As given with --netns"))), ("inode", .integer("That of the namespace's file")),
                ])
            ),
            ("path", .reference("path_state")),
            ("targets", .array(.text(""), "As the user wrote them")),
        ]
    }

    private static var path: Members {
        [
            ("status", .words(["satisfied", "unsatisfied"], "Whether an attempt can be made")),
            ("interface", .nullable(.text("That of IPv4 where usable, else that of IPv6"))),
            ("interface_v4", .nullable(.text(""))),
            ("interface_v6", .nullable(.text(""))),
            ("interface_type", .nullable(interfaceType)),
            ("underlying", .nullable(.text("The interface under a tunnel"))),
            ("ipv4", .flag("")),
            ("ipv6", .flag("")),
            ("dns", .flag("At least one name server is configured")),
            ("expensive", .flag("")),
            ("constrained", .flag("")),
            ("gateways", .array(.text(""), "Addresses, link-local ones with %zone")),
            ("interfaces", .array(.reference("interface"), "All of them, usable ones first in order of preference")),
            ("cause", .nullable(.reference("cause"))),
            ("reasons", .array(.words(PathChangeReason.allCases.map(\.rawValue), ""), "What changed")),
            ("suppressed", .integer("Events that changed nothing of this since the last record")),
            ("consistent", .flag("Whether it rests on complete answers of the kernel")),
        ]
    }

    private static var target: Members {
        [
            ("target", .text("As the user wrote it")),
            ("status", .words(ServerState.allCases.map(\.rawValue), "")),
            ("cause", .nullable(.reference("cause"))),
            ("since", .date("Since when the status holds")),
            ("rtt_ms", .nullable(.number("Round trip, milliseconds"))),
            ("address", .nullable(.text(""))),
            ("family", .nullable(.integer("4 or 6"))),
            ("interface", .nullable(.text(""))),
            ("interface_type", .nullable(interfaceType)),
            ("initial", .flag("True on the first record of each target")),
        ]
    }

    private static var probe: Members {
        let phases: Members = ["dns", "connect", "tls", "http"].map { ($0, .nullable(.number("Milliseconds"))) }
        return [
            ("target", .text("As the user wrote it")),
            ("ok", .flag("")),
            ("rtt_ms", .nullable(.number("Round trip, milliseconds"))),
            ("address", .nullable(.text(""))),
            ("phases_ms", .object(phases)),
            ("cause", .nullable(.reference("cause"))),
        ]
    }

    private static var gap: Members {
        [("reason", .words(["suspend", "stopped"], "")), ("from", .date("")), ("to", .date(""))]
    }

    private static var transfer: Members {
        let states = ["waiting", "running", "suspended", "backing_off", "finished", "failed"]
        return [
            ("url", .text("As the user wrote it, without user and password")),
            ("state", .words(states, "")),
            ("received", .integer("Bytes of the file that are here, also from earlier runs")),
            ("sent", .integer("Bytes of the file that the server has")),
            ("total", .nullable(.integer("Bytes of the whole file"))),
            ("resumed_from", .nullable(.integer("Where the last continuation began"))),
            ("attempt", .integer("From 1; 0 before the first")),
            ("unchanged", .flag("Whether the file was complete before, so that nothing was received")),
            ("file", .nullable(.text("The path of the finished file of get; null before"))),
            ("cause", .nullable(.reference("cause"))),
        ]
    }

    private static var status: Node {
        .object([
            ("v", .integer("The version of this format")),
            ("ts", .date("When it was made")),
            ("path", .reference("path_state")),
            ("targets", .array(.reference("target"), "In the order given")),
        ])
    }

    private static var interface: Node {
        .object([
            ("name", .text("")),
            ("index", .integer("The kernel's number")),
            ("type", interfaceType),
            ("virtual", .flag("Made by software")),
            ("level", .words(LinkLevel.allCases.map(\.rawValue), "systemd's matrix of carrier and addresses")),
            ("expensive", .flag("")),
            ("addresses", .array(.text(""), "ADDRESS/PREFIX")),
        ])
    }

    private static var cause: Node {
        .object([
            ("layer", .words(Cause.Layer.allCases.map(\.rawValue), "The lowest layer that fails")),
            ("code", .words(Cause.Code.allCases.map(\.rawValue), "")),
            ("detail", .text("One sentence for a person")),
            ("evidence", .facts("Raw facts by name")),
        ])
    }

    private static var interfaceType: Node {
        .words(InterfaceType.allCases.map(\.rawValue), "Told from evidence, never from the name")
    }
}
