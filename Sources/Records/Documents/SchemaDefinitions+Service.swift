import Console
import Reachability

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
            ("status", .enumeration(ServerState.allCases.map(\.rawValue) + ["maintenance"], "")),
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
        let states = ServerState.allCases.map(\.rawValue) + ["maintenance", "not_recorded"]
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
