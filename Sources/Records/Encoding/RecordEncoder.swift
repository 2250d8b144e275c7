package import Console
import FoundationEssentials
package import Reachability

/// The description of a stream in its first record.
package struct StreamHeader: Hashable {
    /// The program's version.
    package var version: String
    package var identity: MonitorIdentity
    /// The targets, whose texts are those that the user wrote.
    package var targets: [Endpoint]

    package init(version: String, identity: MonitorIdentity, targets: [Endpoint]) {
        (self.version, self.identity, self.targets) = (version, identity, targets)
    }
}

/// The format of records as JSON, one line each, without the newline. The keys and their order are those of
/// docs/command-line.md ("Record types").
package struct RecordEncoder {
    package var header: StreamHeader

    package init(header: StreamHeader) { self.header = header }

    /// Returns a record's line. Its memory has `capacity` bytes at first.
    package func encode(_ record: Record, capacity: Int = 0) -> [UInt8] {
        var writer = JSONWriter(capacity: capacity)
        write(record, to: &writer)
        return writer.bytes
    }

    package func write(_ record: Record, to writer: inout JSONWriter) {
        writer.object { writer in
            let moment = record.event.moment
            writer.recordHead(seq: record.seq, at: moment, type: record.kind.rawValue)
            switch record.event {
            case .path(let update) where update.isInitial: write(hello: update, to: &writer)
            case .path(let update): Self.write(keysOf: update, to: &writer)
            case .server(_, let update): Self.write(keysOf: update, record.identity, to: &writer)
            case .probe(_, let report): Self.write(keysOf: report, record.identity, to: &writer)
            case .incident(let incident):
                Self.write(keysOf: incident, record.identity, isRecorded: record.isRecorded, to: &writer)
            case .resync(let reason, _): writer.member("reason", reason.rawValue)
            case .gap(let from, let to): write(gap: record.gapReason, from, to, to: &writer)
            case .ended(let moment): write(gap: .stopped, moment, moment, to: &writer)
            }
            if record.superseded > 0 { writer.member("superseded", record.superseded) }
        }
    }

    private func write(hello update: PathUpdate, to writer: inout JSONWriter) {
        writer.member("version", header.version)
        writer.member("boot_id", header.identity.bootID)
        writer.key("netns")
        writer.object { writer in
            writer.member("name", header.identity.namespaceName)
            writer.member("inode", header.identity.namespaceInode)
        }
        writer.key("path")
        writer.object { Self.write(keysOf: update, to: &$0) }
        writer.key("targets")
        writer.array { writer in
            for target in header.targets { writer.value(target.text) }
        }
    }

    /// Writes the keys of a `path` record, without the keys that every record has.
    package static func write(keysOf update: PathUpdate, to writer: inout JSONWriter) {
        let path = update.path
        writer.member("status", path.status.rawValue)
        writer.member("interface", path.interface?.name)
        writer.member("interface_v4", path.interfaceV4?.name)
        writer.member("interface_v6", path.interfaceV6?.name)
        writer.member("interface_type", path.interface?.type.rawValue)
        writer.member("underlying", path.underlying?.name)
        writer.member("ipv4", path.supportsIPv4)
        writer.member("ipv6", path.supportsIPv6)
        writer.member("dns", path.supportsDNS)
        writer.key("dns_servers")
        writer.array { writer in
            for server in path.nameServers {
                writer.object { writer in
                    writer.member("address", server.description)
                    writer.member("interface", server.interface)
                }
            }
        }
        writer.member("expensive", path.isExpensive)
        writer.member("constrained", path.isConstrained)
        writer.member("gateways", path.gateways.map(\.description))
        writer.key("interfaces")
        writer.array { writer in
            for interface in path.interfaces { write(interface, to: &writer) }
        }
        writer.member(path.cause)
        writer.member("reasons", update.reasons.map(\.rawValue))
        writer.member("suppressed", update.coalescedEventCount)
        writer.member("consistent", path.isConsistent)
    }

    private static func write(_ interface: NetworkInterface, to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("name", interface.name)
            writer.member("index", interface.index)
            writer.member("type", interface.type.rawValue)
            writer.member("virtual", interface.isVirtual)
            writer.member("level", interface.level.rawValue)
            writer.member("expensive", interface.isExpensive)
            writer.member("addresses", interface.addresses.map(\.description))
        }
    }

    /// Writes the keys of a `target` record, without the keys that every record has.
    ///
    /// - Parameters:
    ///   - update: the state of the target.
    ///   - identity: the names of the target.
    ///   - moment: the time of the document; by default that of the update.
    ///   - writer: receives the keys.
    package static func write(
        keysOf update: ServerUpdate, _ identity: TargetIdentity? = nil, at moment: Moment? = nil, to writer: inout JSONWriter
    ) {
        writer.member("target", update.endpoint.text)
        writer.member("status", update.statusName.rawValue)
        writer.member(update.pending ?? update.cause)
        writer.member("since", Timestamp.text(update.statusMoment))
        writer.member("rtt_ms", milliseconds: update.roundTrip)
        writer.member("response_ms", milliseconds: update.responseTime)
        write(phases: { update.phases[$0] }, to: &writer)
        writer.member("certificate_days_left", update.certificateDaysLeft(at: moment ?? update.moment))
        writer.member("address", update.address?.description)
        writer.member("family", update.address?.family.rawValue)
        writer.member("interface", update.interface?.name)
        writer.member("interface_type", update.interface?.type.rawValue)
        write(update.addresses, to: &writer)
        identity.write(to: &writer)
        writer.member("phase", update.job?.rawValue)
        writer.member("pending", update.pending != nil)
        writer.member("flapping", update.isFlapping)
        writer.member("paused", update.isPaused)
        writer.member("initial", update.isInitial)
    }

    /// Writes the member `addresses` of a target whose addresses are all probed; empty for others.
    package static func write(_ addresses: [AddressStatus], to writer: inout JSONWriter) {
        writer.key("addresses")
        writer.array { writer in
            for address in addresses {
                writer.object { writer in
                    writer.member("address", address.address.description)
                    writer.member("family", address.address.family.rawValue)
                    writer.member("status", address.statusName.rawValue)
                    writer.member(address.cause)
                    writer.member("since", Timestamp.text(address.since))
                }
            }
        }
    }

    /// Writes the member `canary`: null, or the keys of a `target` record without those that every record has.
    package static func write(canary update: ServerUpdate?, to writer: inout JSONWriter) {
        writer.key("canary")
        guard let update else { return writer.null() }
        writer.object { write(keysOf: update, to: &$0) }
    }

    /// Writes the keys of a `probe` record, without the keys that every record has.
    package static func write(keysOf report: ProbeReport, _ identity: TargetIdentity? = nil, to writer: inout JSONWriter) {
        writer.member("target", report.endpoint.text)
        writer.member("ok", report.succeeded)
        writer.member("rtt_ms", milliseconds: report.roundTrip)
        writer.member("response_ms", milliseconds: report.responseTime)
        writer.member("address", report.address?.description)
        write(phases: report.duration, to: &writer)
        writer.member(
            "certificate_days_left", report.certificateEnd.map { CertificateValidity.daysLeft(until: $0, at: report.moment) })
        writer.member(report.cause)
        identity.write(to: &writer)
        writer.member("phase", report.job?.rawValue)
    }

    /// Writes the member `phases_ms`.
    private static func write(phases time: (ProbePhase) -> Duration?, to writer: inout JSONWriter) {
        writer.key("phases_ms")
        writer.object { writer in
            for phase in ProbePhase.allCases {
                writer.key(text: phase.rawValue)
                writer.milliseconds(time(phase))
            }
        }
    }

    /// Writes the keys of an `incident` record, without the keys that every record has.
    ///
    /// - Parameters:
    ///   - incident: the incident.
    ///   - identity: the names of its subject, if that is a target of a service.
    ///   - isRecorded: whether the history has the incident; `nil` outside of a service.
    ///   - writer: receives the keys.
    package static func write(
        keysOf incident: Incident, _ identity: TargetIdentity? = nil, isRecorded: Bool?, to writer: inout JSONWriter
    ) {
        writer.member("incident", incident.id)
        writer.member("kind", incident.kind.rawValue)
        writer.member("state", incident.state.rawValue)
        writer.member("into", incident.into)
        writer.member("from", Timestamp.text(incident.began))
        writer.member("to", incident.ended.map { Timestamp.text($0) })
        writer.member("scope", incident.scope.rawValue)
        writer.key("subject")
        writer.object { writer in
            writer.member("kind", incident.subject.kind.rawValue)
            writer.member("name", incident.subject.name)
        }
        writer.member(incident.cause)
        writer.member("target_count", incident.targetCount)
        writer.member("targets", incident.targets.map(\.text))
        writer.member("severity", incident.severity?.rawValue)
        writer.key("acknowledged")
        writer.null()
        writer.member("recorded", isRecorded)
        identity.write(to: &writer)
    }

    private func write(gap reason: GapReason, _ from: Moment, _ to: Moment, to writer: inout JSONWriter) {
        writer.member("reason", reason.rawValue)
        writer.member("from", Timestamp.text(from))
        writer.member("to", Timestamp.text(to))
    }
}
