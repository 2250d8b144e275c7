import FoundationEssentials
import Reachability

/// One line of a stream: what the monitor said, and its place in the stream.
struct Record: Hashable {
    /// What is written. ``MonitorEvent/ended(_:)`` is no record.
    var event: MonitorEvent
    /// From 0, without holes; given when the record is taken out to be written.
    var seq: Int = 0
    /// How many records before this one were dropped because the reader did not keep up.
    var superseded: Int = 0

    /// The contract's types.
    enum Kind: String, Hashable, CaseIterable {
        case hello, path, target, probe, resync, gap
    }

    var kind: Kind {
        switch event {
        case .path(let update): update.isInitial ? .hello : .path
        case .server: .target
        case .probe: .probe
        case .resync: .resync
        case .gap, .ended: .gap
        }
    }
}

/// What makes one record replace another.
enum Subject: Hashable {
    case path
    case target(TargetID)
    case probe(TargetID)
    case resync
}

extension Record {
    /// What the record is the latest word on; `nil` where nothing that follows makes it obsolete.
    var subject: Subject? {
        switch event {
        case .path(let update): update.isInitial ? nil : .path
        case .server(let id, _): .target(id)
        case .probe(let id, _): .probe(id)
        case .resync: .resync
        case .gap, .ended: nil
        }
    }

    /// This record where `older`, on the same subject, was never written: what that one alone said is carried over.
    func replacing(_ older: Record) -> Record {
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
