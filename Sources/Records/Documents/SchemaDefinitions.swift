import Console
import FoundationEssentials
import Reachability

extension Schema {
    package typealias Members = [(name: String, node: Node)]

    /// The definitions of each record by its type, and of the parts that records share.
    package static var definitions: Members {
        [
            ("hello", record(.hello, hello)),
            ("path", record(.path, path)),
            ("target", record(.target, target, optional: [("maintenance", maintenance)])),
            ("probe", record(.probe, probe)),
            ("incident", record(.incident, incident)),
            (
                "resync",
                record(
                    .resync,
                    [("reason", .enumeration(ResyncReason.allCases.map(\.rawValue), "Why the kernel's state was read again"))])
            ),
            ("gap", record(.gap, gap)),
            ("transfer", record(named: "transfer", transfer)),
            ("status", status),
            ("probe_summary", probeSummary),
            ("why", why),
            ("why_targets", whyTargets),
            ("path_state", .object(path)),
            ("target_state", .object(target)),
            ("interface", interface),
            ("cause", cause),
        ] + service
    }

    private static func record(_ kind: Record.Kind, _ members: Members, optional: Members = []) -> Node {
        record(named: kind.rawValue, members, optional: optional)
    }

    private static func record(named type: String, _ members: Members, optional: Members = []) -> Node {
        let common: Members = [
            ("v", .integer("The version of this format")),
            ("seq", .integer("The record's number, from 0 without gaps")),
            ("ts", .date("When the input that caused the record was read, UTC, milliseconds")),
            ("mono_ns", .integer("The same time on CLOCK_MONOTONIC, nanoseconds")),
            ("type", .constant(type)),
        ]
        let superseded = Node.integer(
            "The number of records that were dropped before this one because the reader did not keep up")
        return .object(common + members, optional: [("superseded", superseded)] + optional)
    }

    private static var maintenance: Node {
        .flag("In the status document of the service: whether a maintenance window covers the target, whose probes go on")
    }

    private static var hello: Members {
        [
            ("version", .text("The program's version")),
            ("boot_id", .text("/proc/sys/kernel/random/boot_id")),
            (
                "netns",
                .object([
                    ("name", .nullable(.text("As given with --netns"))), ("inode", .integer("The inode of the namespace's file")),
                ])
            ),
            ("path", .reference("path_state")),
            ("targets", .array(.text(""), "The targets as the user wrote them")),
        ]
    }

    static var path: Members {
        [
            ("status", .enumeration(["satisfied", "unsatisfied"], "Whether a connection can be attempted")),
            ("interface", .nullable(.text("The interface of IPv4 if usable, else that of IPv6"))),
            ("interface_v4", .nullable(.text(""))),
            ("interface_v6", .nullable(.text(""))),
            ("interface_type", .nullable(interfaceType)),
            ("underlying", .nullable(.text("The interface under a tunnel"))),
            ("ipv4", .flag("")),
            ("ipv6", .flag("")),
            ("dns", .flag("At least one name server is configured; it may be unreachable")),
            (
                "dns_servers",
                .array(
                    .object([
                        ("address", .text("Link-local ones with %zone")),
                        ("interface", .nullable(.text("The interface that leads to it: on-link, otherwise that of the path"))),
                    ]), "The configured name servers, in the order in which they are asked")
            ),
            ("expensive", .flag("")),
            ("constrained", .flag("")),
            ("gateways", .array(.text(""), "Addresses, link-local ones with %zone")),
            ("interfaces", .array(.reference("interface"), "All interfaces, usable ones first in order of preference")),
            ("cause", .nullable(.reference("cause"))),
            ("reasons", .array(.enumeration(PathChangeReason.allCases.map(\.rawValue), ""), "What changed")),
            ("suppressed", .integer("The number of events since the last record that changed none of these keys")),
            ("consistent", .flag("Whether the record is based on complete answers of the kernel")),
        ]
    }

    private static var target: Members {
        [
            ("target", .text("The target as the user wrote it")),
            ("status", .enumeration(StatusName.allCases.map(\.rawValue), "")),
            ("cause", .nullable(.reference("cause"))),
            ("since", .date("The time since which the status holds")),
            ("rtt_ms", .nullable(.number("Round trip, milliseconds"))),
            ("response_ms", .nullable(.number(responseTime))),
            ("phases_ms", phases),
            ("certificate_days_left", certificateDaysLeft),
            ("address", .nullable(.text(""))),
            ("family", .nullable(.integer("4 or 6"))),
            ("interface", .nullable(.text(""))),
            ("interface_type", .nullable(interfaceType)),
            (
                "addresses",
                .array(
                    .object([
                        ("address", .text("")),
                        ("family", .integer("4 or 6")),
                        (
                            "status",
                            .enumeration(
                                [StatusName.unknown, .up, .down, .unreachable].map(\.rawValue),
                                "unknown before its first attempt, unreachable without a route")
                        ),
                        ("cause", .nullable(.reference("cause"))),
                        ("since", .date("The time since which the status holds")),
                    ]), "The addresses of the name, if all of them are probed; empty for other targets")
            ),
        ] + identity + [
            ("phase", phase),
            (
                "pending",
                .flag("Whether the last probe failed, and too few did to change the status; `cause` is that of the failure")
            ),
            ("flapping", .flag("Whether probes succeed and fail in turn: above 30 % weighted changes in the last 20 results")),
            ("paused", .flag("Whether probes wait because the byte budget of a metered interface is used up")),
            ("initial", .flag("True on the first record of each target")),
        ]
    }

    private static var probe: Members {
        [
            ("target", .text("The target as the user wrote it")),
            ("ok", .flag("")),
            ("rtt_ms", .nullable(.number("Round trip, milliseconds"))),
            ("response_ms", .nullable(.number("\(responseTime): the sum of the phases without dns; null if the probe failed"))),
            ("address", .nullable(.text(""))),
            ("phases_ms", phases),
            ("certificate_days_left", certificateDaysLeft),
            ("cause", .nullable(.reference("cause"))),
        ] + identity + [("phase", phase)]
    }

    private static var phase: Node {
        .nullable(.enumeration(JobPhase.allCases.map(\.rawValue), "Whether the job of a heartbeat target runs; null for others"))
    }

    private static var phases: Node {
        .object(ProbePhase.allCases.map { ($0.rawValue, .nullable(.number("Milliseconds"))) })
    }

    private static let responseTime = "From the start of the connection to the complete answer, milliseconds"

    private static var certificateDaysLeft: Node {
        .nullable(.integer("Whole days until the first certificate of a tls or https target expires; negative if it has expired"))
    }

    /// The percentiles of response times.
    static var responseTimes: Node {
        .object(["p50", "p95", "p99"].map { ($0, .nullable(.number("Milliseconds"))) })
    }

    /// The names of a target.
    static var identity: Members {
        [
            ("id", .nullable(.text("The stable identifier of the service's configuration; null outside of serve"))),
            ("name", .nullable(.text("The name for people; null if it has none"))),
            ("group", .nullable(.text("The group on the page"))),
            ("labels", .nullable(.texts("The labels by their names; null without labels"))),
        ]
    }

    static var incident: Members {
        let subject: Members = [
            ("kind", .enumeration(Incident.Subject.Kind.allCases.map(\.rawValue), "")),
            ("name", .nullable(.text("An interface, an address, or a target; null for this machine and for all resolvers"))),
        ]
        // A later version fills it in.
        let acknowledgement: Members = [
            ("by", .text("Who has acknowledged the incident")), ("at", .date("")), ("note", .nullable(.text(""))),
        ]
        return [
            ("incident", .text("The incident's identifier, the same in all its records")),
            (
                "kind",
                .enumeration(Incident.Kind.allCases.map(\.rawValue), "Whether the targets fail, or succeed and fail in turn")
            ),
            ("state", .enumeration(Incident.State.allCases.map(\.rawValue), "All states but open are ends")),
            ("into", .nullable(.text("The incident with which this one was merged; null in other states"))),
            ("from", .date("The time of the first failure")),
            ("to", .nullable(.date("The time at which the incident ended"))),
            ("scope", .enumeration(Incident.Scope.allCases.map(\.rawValue), "The part of the network that is at fault")),
            ("subject", .object(subject)),
            ("cause", .reference("cause")),
            ("target_count", .integer("The largest number of targets that the incident affected at the same time")),
            ("targets", .array(.text(""), "The first targets that the incident affected, at most 10")),
            (
                "severity",
                .nullable(
                    .enumeration(
                        Incident.Severity.allCases.map(\.rawValue),
                        "The highest severity of the targets that the incident affected; null without one, and outside of serve"))
            ),
            ("acknowledged", .nullable(.object(acknowledgement))),
            ("recorded", .nullable(.flag("Whether the history has the incident; null outside of serve"))),
        ] + identity
    }

    private static var gap: Members {
        [("reason", .enumeration(GapReason.allCases.map(\.rawValue), "")), ("from", .date("")), ("to", .date(""))]
    }

    private static var transfer: Members {
        let states = ["waiting", "running", "suspended", "backing_off", "finished", "failed"]
        return [
            ("url", .text("The URL as the user wrote it, without user and password")),
            ("state", .enumeration(states, "")),
            ("received", .integer("Bytes of the file that were received, including earlier runs")),
            ("sent", .integer("Bytes of the file that were sent")),
            ("total", .nullable(.integer("Size of the complete file in bytes"))),
            ("resumed_from", .nullable(.integer("The offset at which the transfer was last continued"))),
            ("attempt", .integer("The number of the attempt, from 1; 0 before the first")),
            ("unchanged", .flag("Whether the file was already complete, so that nothing was received")),
            ("file", .nullable(.text("The path of the file that get completed; null before"))),
            ("cause", .nullable(.reference("cause"))),
        ]
    }

    private static var status: Node {
        .object([
            ("v", .integer("The version of this format")),
            ("ts", .date("When the document was created")),
            ("path", .reference("path_state")),
            ("targets", .array(.reference("target"), "The targets in the given order")),
            ("canary", canary),
        ])
    }

    /// The URL whose answer is known.
    static var canary: Node { .nullable(.reference("target_state")) }

    private static var probeSummary: Node {
        let times: Members = [
            ("min", "The shortest"), ("median", "The middle one, or the mean of the two in the middle"), ("max", "The longest"),
            ("jitter", "The mean difference between consecutive ones; null for fewer than two"),
        ].map { ($0.0, .nullable(.number("\($0.1), milliseconds"))) }
        let target: Members =
            [
                ("target", .text("The target as the user wrote it")),
                ("sent", .integer("The number of probes that ended")),
                ("ok", .integer("The number of probes that the target answered")),
                (
                    "loss",
                    .nullable(
                        .number(
                            "The part of the packets without an answer, from 0 to 1; a failed probe counts as one packet; null without a probe"
                        ))
                ),
                ("rtt_ms", .object(times)),
                ("response_ms", responseTimes),
                ("cause", .nullable(.reference("cause"))),
            ] + identity
        return .object([
            ("v", .integer("The version of this format")),
            ("ts", .date("When the document was created")),
            ("targets", .array(.object(target), "The targets in the given order; cause is that of the last failed probe")),
        ])
    }

    private static var why: Node {
        let layer: Members = [
            ("layer", .enumeration(Diagnosis.layers.map(\.rawValue), "")),
            ("ok", .nullable(.flag("Null if the layer is not reached, not used, or not proven to work"))),
            ("ms", .nullable(.number("The time that the layer took, milliseconds"))),
            ("detail", .text("One sentence for a person")),
            ("evidence", .facts("Raw values by name")),
        ]
        let address: Members = [
            ("address", .text("")),
            ("family", .integer("4 or 6")),
            ("status", .enumeration(StatusName.allCases.map(\.rawValue), "")),
            ("cause", .nullable(.reference("cause"))),
            ("rtt_ms", .nullable(.number("Round trip, milliseconds"))),
        ]
        return .object([
            ("v", .integer("The version of this format")),
            ("ts", .date("When the document was created")),
            ("target", .nullable(.text("The target as the user wrote it; null if the path is explained"))),
            ("status", .enumeration(StatusName.allCases.map(\.rawValue) + ["satisfied", "unsatisfied"], "")),
            ("cause", .nullable(.reference("cause"))),
            ("rtt_ms", .nullable(.number("Round trip, milliseconds"))),
            ("address", .nullable(.text(""))),
            ("family", .nullable(.integer("4 or 6"))),
            ("interface", .nullable(.text(""))),
            ("interface_type", .nullable(interfaceType)),
            ("layers", .array(.object(layer), "All layers, from the link to HTTP")),
            (
                "addresses",
                .array(.object(address), "The results of the addresses of a name that has several; empty for other targets")
            ),
            ("canary", canary),
        ])
    }

    private static var whyTargets: Node {
        .object([
            ("v", .integer("The version of this format")),
            ("ts", .date("When the first target was examined")),
            ("targets", .array(.reference("why"), "The documents of the targets, in the given order")),
        ])
    }

    private static var interface: Node {
        .object([
            ("name", .text("")),
            ("index", .integer("The kernel's number")),
            ("type", interfaceType),
            ("virtual", .flag("Whether the interface is implemented in software")),
            ("level", .enumeration(LinkLevel.allCases.map(\.rawValue), "systemd's matrix of carrier and addresses")),
            ("expensive", .flag("")),
            ("addresses", .array(.text(""), "ADDRESS/PREFIX")),
        ])
    }

    private static var cause: Node {
        .object([
            ("layer", .enumeration(Cause.Layer.allCases.map(\.rawValue), "The lowest layer that fails")),
            ("code", .enumeration(Cause.Code.allCases.map(\.rawValue), "")),
            ("detail", .text("One sentence for a person")),
            ("evidence", .facts("Raw values by name")),
        ])
    }

    private static var interfaceType: Node {
        .enumeration(InterfaceType.allCases.map(\.rawValue), "Determined from evidence, never from the name")
    }
}

/// The documents of the service: its history, its report, and the state of all its targets.
extension Schema {
    static var service: Members {
        [
            ("service_status", serviceStatus), ("history", history), ("report", report), ("reload", reload),
            ("incident_state", .object(incident)),
        ]
    }

    private static var reload: Node {
        .object([
            ("v", .integer("The version of this format")),
            ("ts", .date("When the configuration was loaded")),
            ("added", .integer("The number of targets that the previous configuration did not have")),
            ("removed", .integer("The number of targets that only the previous configuration had")),
            ("changed", .integer("The number of targets with another address, description or setting")),
            ("restart_keys", .array(.text(""), "The keys whose new values need a restart")),
        ])
    }

    private static var serviceStatus: Node {
        let recording: Members = [
            ("ok", .flag("Whether results are recorded")),
            ("since", .date("When recording began or ended")),
            ("reason", .nullable(.text("Why nothing is recorded"))),
        ]
        return .object([
            ("v", .integer("The version of this format")),
            ("ts", .date("When the document was created")),
            ("path", .nullable(.reference("path_state"))),
            ("targets", .array(.reference("target"), "The targets that the query selects, problems first")),
            ("canary", canary),
            ("instance", .text("The name of the machine")),
            ("recording", .object(recording)),
            ("total", .integer("The number of targets that the query selects")),
            ("next", .nullable(.text("The position of the next page"))),
        ])
    }

    private static var history: Node {
        let gap: Members = [
            ("from", .date("")), ("to", .date("")),
            ("reason", .enumeration(["suspend", "stopped", "not_recorded"], "Why there are no results")),
        ]
        let sample: Members = [
            ("target", .text("The id or the text of the target")), ("t", .date("")),
            ("status", .enumeration(StatusName.allCases.map(\.rawValue) + ["maintenance"], "")),
            ("rtt_ms", .nullable(.number("Round trip, milliseconds; null if the probe failed"))),
            (
                "response_ms",
                .nullable(
                    .number("Response time, milliseconds; null if the probe failed, and for results of versions without it"))
            ),
        ]
        return .object(
            period + [
                ("incidents", .array(.reference("incident_state"), "The newest first")),
                ("gaps", .array(.object(gap), "The oldest first")),
                ("path_events", .array(.object([("ts", .date("When the path changed"))] + path), "The oldest first")),
                ("samples", .nullable(.array(.object(sample), "Each result, the oldest first; null if not asked for"))),
                ("next", .nullable(.text("The position after which the next document continues"))),
            ])
    }

    private static var report: Node {
        let states = StatusName.allCases.map(\.rawValue) + ["maintenance", "not_recorded"]
        let roundTrips: Members = ["min", "p50", "p95", "max"].map { ($0, .nullable(.number("Milliseconds"))) }
        let target: Members =
            [
                ("target", .text("The id or the text of the target"))
            ] + identity + [
                ("availability", .nullable(.number("(up + degraded) / (up + degraded + down); null without such time"))),
                ("availability_with_local", .nullable(.number("The same, with unreachable in the denominator"))),
                ("observed", .nullable(.number("The part of the period with a result"))),
                ("seconds", .object(states.map { ($0, .number("")) })),
                ("probes", .integer("")),
                ("lost", .integer("Probes that failed")),
                ("rtt_ms", .object(roundTrips)),
                ("response_ms", responseTimes),
                ("outages", .integer("")),
                ("worst", .array(.reference("incident_state"), "The longest outages, the longest first")),
            ]
        return .object(
            period + [
                ("time_zone", .text("The zone of dates without an offset")),
                ("targets", .array(.object(target), "")),
            ])
    }

    private static var period: Members {
        [
            ("v", .integer("The version of this format")),
            ("ts", .date("When the document was created")),
            ("since", .date("The start of the period")),
            ("until", .date("The end of the period")),
            ("instance", .text("The name of the machine whose service recorded the history")),
            ("state", .text("The directory of the history")),
        ]
    }
}
