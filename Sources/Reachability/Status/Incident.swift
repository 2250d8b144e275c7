public import FoundationEssentials

/// A fault, and the servers that it affects. Failures of several servers with the same subject, such as one silent gateway, are one
/// incident, whatever their causes.
///
/// An incident opens when a failure has lasted ``ProbeSettings/openAfter``, and is published then, when it ends, and at most once a second
/// while the number of its servers grows or its cause changes. ``id`` is the same in all of these values.
public struct Incident: Hashable, Sendable, Identifiable {
    /// Whether the fault exists. Later versions may add states.
    @nonexhaustive public enum State: String, Hashable, Sendable, CaseIterable {
        /// The fault exists.
        case open
        /// The last affected server is reachable again, or fails because of another component.
        case over
        /// The fault has turned out to be one of a component nearer to this machine: the incident ``into`` continues.
        case merged
        /// The last affected server is no longer monitored.
        case removed
    }

    /// Whether the servers fail, or succeed and fail in turn. Later versions may add kinds.
    @nonexhaustive public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The servers fail.
        case fault
        /// The servers succeed and fail in turn (``ServerUpdate/isFlapping``).
        case flapping
    }

    /// The part of the network that is at fault. Later versions may add scopes.
    @nonexhaustive public enum Scope: String, Hashable, Sendable, CaseIterable {
        /// This machine: its link, address, routes, packet filter, configuration or limits.
        case local
        /// A component between this machine and the server: a gateway, a resolver, a router, or one that is not known.
        case path
        /// The server.
        case server
    }

    /// How important the failures of targets are, as the configuration of a service says.
    package enum Severity: String, Hashable, Sendable, CaseIterable, Comparable {
        case info, warning, critical

        private var rank: Int {
            switch self {
            case .info: 0
            case .warning: 1
            case .critical: 2
            }
        }

        package static func < (one: Self, other: Self) -> Bool { one.rank < other.rank }
    }

    /// The component that is at fault.
    public struct Subject: Hashable, Sendable {
        /// The kind of a component. Later versions may add kinds.
        @nonexhaustive public enum Kind: String, Hashable, Sendable, CaseIterable {
            /// An interface of this machine, or this machine if the name is `nil`.
            case interface
            /// The next router.
            case gateway
            /// A name server, or all of them if the name is `nil`.
            case resolver
            /// A router that reported the fault by ICMP.
            case hop
            /// A host of which several servers do not answer.
            case host
            /// The server.
            case target
        }

        /// The kind of the component.
        public let kind: Kind
        /// The component's name: an interface, an address, or the server as its monitor was given it. `nil` if it has none.
        public let name: String?

        /// Creates a subject.
        ///
        /// - Parameters:
        ///   - kind: the kind of the component.
        ///   - name: the component's name; `nil` if it has none.
        public init(_ kind: Kind, _ name: String?) { (self.kind, self.name) = (kind, name) }
    }

    /// The incident's identifier. It is unique among the incidents of all monitors of this machine, unless two begin in the same
    /// millisecond.
    public let id: String
    /// Whether the servers fail, or flap.
    public let kind: Kind
    /// Whether the fault exists.
    public let state: State
    /// The identifier of the incident with which this one was merged; `nil` in other states.
    public let into: String?
    /// The part of the network that is at fault.
    public let scope: Scope
    /// The component that is at fault.
    public let subject: Subject
    /// The cause from which most of the affected servers fail now, or failed last.
    public let cause: Cause
    /// The largest number of servers that the incident affected at the same time.
    public let targetCount: Int
    /// The first servers that the incident affected, at most ten.
    public let targets: [Endpoint]
    /// All servers that the incident has affected so far; empty if the monitor does not publish them
    /// (``MonitorConfiguration/publishesMembers``).
    package let members: TargetSet
    /// The highest severity of the affected servers; `nil` if none has one, and outside of a service.
    package let severity: Severity?
    package let began: Moment
    package let ended: Moment?
    package let moment: Moment

    package init(
        id: String, kind: Kind = .fault, state: State, into: String? = nil, scope: Scope, subject: Subject, cause: Cause,
        targetCount: Int, targets: [Endpoint], members: TargetSet = TargetSet(), severity: Severity? = nil,
        began: Moment, ended: Moment?, moment: Moment
    ) {
        self.id = id
        self.kind = kind
        self.state = state
        self.into = into
        self.scope = scope
        self.subject = subject
        self.cause = cause
        self.targetCount = targetCount
        self.targets = targets
        self.members = members
        self.severity = severity
        self.began = began
        self.ended = ended
        self.moment = moment
    }

    /// Creates an incident like those that monitors publish, for tests and previews.
    ///
    /// - Parameters:
    ///   - id: the incident's identifier.
    ///   - kind: whether the servers fail, or flap.
    ///   - scope: the part of the network that is at fault.
    ///   - subject: the component that is at fault.
    ///   - cause: the cause of most failures.
    ///   - targetCount: the largest number of servers that were affected at the same time; by default the number of `targets`.
    ///   - targets: the first servers that the incident affected.
    ///   - from: the time of the first failure.
    ///   - to: the time of the end; `nil`, the default, if the incident is open.
    ///   - into: the identifier of the incident with which this one was merged at its end.
    public init(
        id: String, kind: Kind = .fault, scope: Scope, subject: Subject, cause: Cause, targetCount: Int? = nil,
        targets: [Endpoint] = [], from: Date, to: Date? = nil, into: String? = nil
    ) {
        let (began, ended) = (Moment(from), to.map { Moment($0) })
        self.init(
            id: id, kind: kind, state: ended == nil ? .open : into == nil ? .over : .merged,
            into: ended == nil ? nil : into, scope: scope, subject: subject, cause: cause,
            targetCount: targetCount ?? targets.count, targets: Array(targets.prefix(Self.listedTargets)), began: began,
            ended: ended, moment: ended ?? began)
    }

    /// The maximum number of ``targets``.
    package static let listedTargets = 10

    /// Whether the incident has not ended.
    package var isOpen: Bool { state == .open }

    /// The time of the first failure, by the wall clock.
    public var from: Date { began.date }
    /// The time at which the incident ended, by the wall clock; `nil` while it is open.
    public var to: Date? { ended?.date }
    /// The time at which this state was read, by the wall clock.
    public var date: Date { moment.date }
    /// The time at which this state was read, by a clock that is never set.
    public var instant: ContinuousClock.Instant { moment.instant }
}

extension Incident.Subject: CustomStringConvertible {
    /// The kind and the name: `gateway 192.0.2.1`.
    public var description: String { name.map { "\(kind.rawValue) \($0)" } ?? kind.rawValue }
}

extension Incident: CustomStringConvertible {
    /// The state, the subject, the number of servers, and the cause, in one line.
    public var description: String {
        "\(state.rawValue): \(kind == .flapping ? "flapping " : "")\(subject), \(targetCount) servers, \(cause)"
    }
}

/// An incident that an earlier process has left open, and its targets in this one.
package struct OpenIncident: Hashable, Sendable {
    package let incident: Incident
    /// The numbers of the targets of this monitor that the incident affected.
    package let targets: [Int]
    /// Whether the incident stays open for a day if it has no targets, because this monitor has none at all.
    package let waits: Bool

    package init(_ incident: Incident, targets: [Int], waits: Bool = false) {
        (self.incident, self.targets, self.waits) = (incident, targets, waits)
    }
}
