import Reachability
import Records

/// The settings of the service. A new value has the defaults.
struct Configuration: Hashable, Sendable {
    /// The address of the page and of the API.
    var listen = ListenAddress.standard
    /// The names beside `localhost` and the address by which browsers may open the page.
    var allowedHosts: [String] = []
    /// The path of the API's Unix socket; `nil` for the default of the environment.
    var socket: String?
    /// The directory of the history; `nil` for the default of the environment.
    var state: String?
    /// The time zone of days and of maintenance windows (tz database); `nil` for that of this machine.
    var timeZone: String?
    /// The settings of targets without a class, and their thresholds.
    var probes = ProbeSettings()
    /// The probe of a URL with a known answer, which finds captive portals; `nil` for none.
    var canary: Canary?
    var retention = Retention()
    /// The time between two checkpoints of the history.
    var flushEvery = Duration.seconds(3_600)
    /// The severity of targets without one of their own; `nil` for none.
    var severity: Severity?
    /// The classes of targets, by name.
    var classes: [String: TargetClass] = [:]
    /// The groups of the page, in their order.
    var groups: [TargetGroup] = []
    var maintenance: [MaintenanceWindow] = []
    /// The targets, in their order.
    var targets: [ConfiguredTarget] = []

    /// The maximum number of bytes of the path of a Unix socket (unix(7)).
    static let longestSocketPath = 107

    static let keys = [
        "listen", "allowed_hosts", "socket", "state", "time_zone", "interval", "probe_timeout", "fail_after", "recover_after",
        "open_after", "close_after", "severity",
        "canary", "retention", "flush_every", "classes", "thresholds", "groups", "maintenance", "targets",
    ]

    /// The URL with a known answer.
    struct Canary: Hashable, Sendable {
        var endpoint: Endpoint
        var settings: HTTPProbeSettings
    }

    /// Settings that several targets share.
    struct TargetClass: Hashable, Sendable {
        var pacing = TargetPacing()
        /// The bytes that probes over one metered interface may use per day.
        var bytesPerDay: Int?
        var thresholds = TargetThresholds()
        /// The labels, to which those of a target are added.
        var labels: [String: String] = [:]
        var severity: Severity?
    }

    /// A group of the page.
    struct TargetGroup: Hashable, Sendable {
        var name: String
        /// Whether the page shows the group as one line at first.
        var isFolded = false
        var severity: Severity?
    }

    /// The importance of a target's failures.
    typealias Severity = Incident.Severity
}

/// A target of the configuration.
struct ConfiguredTarget: Hashable, Sendable {
    /// The stable identifier; `nil` if the history belongs to the text of the target.
    var id: String?
    /// The name for people; `nil` for the text of the target.
    var name: String?
    var endpoint: Endpoint
    var group: String?
    var className: String?
    /// The labels of the class and of the target.
    var labels: [String: String] = [:]
    /// The severity of the target, else that of its class, of its group, or of the configuration; `nil` without any.
    var severity: Configuration.Severity?
    /// The settings of the probes, without the content of ``files``.
    var settings: ProbeSettings
    /// The files that the settings need.
    var files: [FileReference] = []
    /// The place of the target.
    var origin: ConfigurationOrigin

    /// The key of the target's history.
    var key: String { id ?? endpoint.text }
    /// The names of the target's records.
    var identity: TargetIdentity { TargetIdentity(id: id, name: name, group: group, labels: labels) }
    /// The name that people see.
    var title: String { name ?? endpoint.text }

    /// A file that a target's settings need.
    struct FileReference: Hashable, Sendable {
        enum Purpose: Hashable, Sendable {
            case authorities
            case revocationLists
            case bearerToken
            case password(user: String)
        }

        var purpose: Purpose
        /// The path as the user wrote it.
        var path: String
        var origin: ConfigurationOrigin
    }
}
