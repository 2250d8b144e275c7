import FoundationEssentials
package import Reachability

/// One record of a stream: an event of the monitor, and its number in the stream.
package struct Record: Hashable {
    /// The event. ``MonitorEvent/ended(_:)`` is not written as a record.
    package var event: MonitorEvent
    /// The number of the record, from 0 without gaps. It is assigned when the record is taken from the queue to be written.
    package var seq: Int = 0
    /// The number of records before this one that were dropped because the reader did not keep up.
    package var superseded: Int = 0
    /// Whether the history has the incident; `nil` outside of a service, and for other records.
    package var isRecorded: Bool?
    /// The names of the target, or of the only target of an incident; `nil` outside of a service.
    package var identity: TargetIdentity?
    /// The names of ``Incident/targets`` for people; empty if they are those that the user wrote.
    package var targetNames: [String] = []
    /// The reason of a gap. Only a service knows the gap since its last run.
    package var gapReason = GapReason.suspend

    package init(
        event: MonitorEvent, seq: Int = 0, superseded: Int = 0, isRecorded: Bool? = nil, identity: TargetIdentity? = nil,
        gapReason: GapReason = .suspend
    ) {
        (self.event, self.seq, self.superseded) = (event, seq, superseded)
        (self.isRecorded, self.identity, self.gapReason) = (isRecorded, identity, gapReason)
    }

    /// The record types of docs/command-line.md ("Record types").
    package enum Kind: String, Hashable, CaseIterable {
        case hello, path, target, probe, incident, resync, gap
    }

    package var kind: Kind {
        switch event {
        case .path(let update): update.isInitial ? .hello : .path
        case .server: .target
        case .probe: .probe
        case .incident: .incident
        case .resync: .resync
        case .gap, .ended: .gap
        }
    }
}

/// The reason of a gap: nothing was observed in it.
package enum GapReason: String, Hashable, Sendable, CaseIterable {
    /// The machine was suspended.
    case suspend
    /// The program did not run.
    case stopped
}

/// The subject of a record. A newer record may replace an older one on the same subject.
package enum Subject: Hashable {
    case path
    case target(TargetID)
    case probe(TargetID)
    /// An incident, by its identifier.
    case incident(String)
    case resync
}

extension Record {
    /// The subject of the record; `nil` if no later record replaces it.
    package var subject: Subject? {
        switch event {
        case .path(let update): update.isInitial ? nil : .path
        case .server(let id, _): .target(id)
        case .probe(let id, _): .probe(id)
        case .incident(let incident): .incident(incident.id)
        case .resync: .resync
        case .gap, .ended: nil
        }
    }

    /// Returns this record merged with `older`, a record on the same subject that is dropped: its reasons and counts are added.
    package func replacing(_ older: Record) -> Record {
        var merged = self
        switch (older.event, event) {
        case (.path(let old), .path(let new)):
            let reasons = Set(old.reasons).union(new.reasons)
            merged.event = .path(
                PathUpdate(
                    path: new.path, reasons: PathChangeReason.allCases.filter(reasons.contains), isInitial: new.isInitial,
                    coalescedEventCount: old.coalescedEventCount + new.coalescedEventCount, moment: new.moment
                ))
        case (.server(let id, let old), .server(_, let new)) where old.isInitial:
            merged.event = .server(id, new.asInitial())
        default: break
        }
        return merged
    }
}
