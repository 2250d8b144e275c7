import Console
import HTTPSession
import Reachability

/// The probes of endpoints whose transfers have no connection. They find the causes that `netwatch status` reports for the same
/// targets.
final class Diagnoses {
    /// The time for which the report of a failure waits for the first result of a probe, in nanoseconds.
    static let grace: Int64 = 500_000_000

    private struct Watch {
        var endpoint: Endpoint
        var monitor: ServerMonitor
        var token: CallbackToken
    }

    private let path: PathMonitor
    private let inbox: EventInbox
    private let settings: ProbeSettings
    private var watches: [Int: Watch] = [:]

    init(_ path: PathMonitor, _ settings: ProbeSettings, _ inbox: EventInbox) {
        (self.path, self.settings, self.inbox) = (path, settings, inbox)
    }

    /// Starts to probe the endpoint for the transfer at this place, for at most the remaining time. If it is already probed,
    /// nothing changes.
    func begin(_ place: Int, _ endpoint: Endpoint, remaining: Duration?) {
        guard watches[place]?.endpoint != endpoint else { return }
        var settings = settings
        if let remaining { settings.timeout = min(settings.timeout, max(.milliseconds(100), remaining - .milliseconds(300))) }
        // Without a monitor, the transfer's own error is reported.
        guard let monitor = try? ServerMonitor(endpoint, settings: settings, monitor: path) else { return }
        let token = monitor.onChange { [inbox] update in
            guard let diagnosis = Diagnosis(update) else { return }
            inbox.put(EventInbox.ProbeResult(place: place, endpoint: endpoint, diagnosis: diagnosis, moment: Moment.now))
        }
        watches[place] = Watch(endpoint: endpoint, monitor: monitor, token: token)
    }

    /// Returns whether the result is of the endpoint that is now probed for the transfer.
    func isCurrent(_ result: EventInbox.ProbeResult) -> Bool { watches[result.place]?.endpoint == result.endpoint }

    func end(_ place: Int) { watches[place] = nil }
    func endAll() { watches = [:] }
}
