import Console
import FoundationEssentials
package import Reachability

/// The result of a lookup of a target's name, for people.
package struct LookupResult: Hashable, Sendable {
    /// The name.
    package let name: String
    /// The duration of the lookup; `nil` if it is not known.
    package let duration: Duration?
    /// The name server that answered; `nil` if it is not known.
    package let server: String?
    /// The cause of its failure; `nil` if the name was resolved.
    package let cause: Cause?

    /// Creates the result of the lookup of a probe; `nil` if no name server was asked: the target is an address, this machine's hosts file has
    /// its name, or the lookup has not ended.
    package init?(_ report: ProbeReport) {
        guard case .name(let name) = (report.proxy ?? report.endpoint).host else { return nil }
        self.name = name
        // A layer before the name's resolution fails, such as the link: the lookup says nothing about the name server.
        if let cause = report.cause, !cause.isOfLookup, report.address == nil { return nil }
        cause = report.cause.flatMap { $0.isOfLookup ? $0 : nil }
        (duration, server) = (report.resolution, report.lookup?.server?.description)
        switch report.lookup?.answeredBy {
        case .dns, .nss: break
        case .hosts, .notAsked, nil: if cause == nil { return nil }
        }
    }

    /// Whether a name server has answered. A name that does not exist is an answer.
    package var isAnswered: Bool {
        cause.map { [.nameNotFound, .noAddressForFamily, .unusableAddress].contains($0.code) } ?? true
    }

    /// The result as `the last lookup (db) succeeded in 1.2 ms, by 192.0.2.53`, or with the cause of its failure.
    package var sentence: String {
        if let cause { return TextStyle.printable("the last lookup (\(name)) failed: ") + cause.sentence }
        let time = duration.map { " in \(ReadableDuration.text($0))" } ?? ""
        return TextStyle.printable("the last lookup (\(name)) succeeded\(time)\(server.map { ", by \($0)" } ?? "")")
    }
}
