internal import Certificates
internal import Pacing

/// The outcome of one probe.
package struct ProbeReport: Hashable, Sendable {
    package var endpoint: Endpoint
    /// The round trip of the handshake; `nil` if it failed, or if a retransmission prevents the measurement.
    package var roundTrip: Duration?
    /// The number of SYN segments that remained unanswered before a handshake completed; 0 if none did.
    package var lostPackets: Int
    /// The address that answered, or the last one that was tried.
    package var address: IPAddress?
    /// The duration of the name's resolution; `nil` for addresses.
    package var resolution: Duration?
    /// The answer to the name's lookup, with its evidence; `nil` for addresses.
    package var lookup: LookupAnswer?
    /// The duration of the attempt that was connected. If none was, that of all attempts, from the start of the first; `nil` if none was
    /// made.
    package var connection: Duration?
    /// The result of the TLS handshake and the HTTP exchange; `nil` if there was none.
    package var levels: LevelResult?
    /// The cause of the failure; `nil` if the probe succeeded.
    package var cause: Cause?
    package var moment: Moment
    /// The proxy through which the target was probed; `nil` without one.
    package var proxy: Endpoint?
    /// Whether the next probe, which follows at once, examines the failure in another way.
    package var isProvisional = false

    package init(
        endpoint: Endpoint, roundTrip: Duration? = nil, lostPackets: Int = 0, address: IPAddress? = nil,
        resolution: Duration? = nil,
        lookup: LookupAnswer? = nil,
        connection: Duration? = nil, cause: Cause? = nil, moment: Moment
    ) {
        self.endpoint = endpoint
        self.roundTrip = roundTrip
        self.lostPackets = lostPackets
        self.address = address
        self.resolution = resolution
        self.lookup = lookup
        self.connection = connection
        self.cause = cause
        self.moment = moment
    }

    package var succeeded: Bool { cause == nil }

    /// The time that all connections of the probe needed: to the target, through a proxy's tunnel, and to redirects; `nil` if there was none. For
    /// a target without a connection, the time of its answer is in place of the first one.
    package var connect: Duration? {
        let first = levels?.answerNanoseconds.map { Duration.nanoseconds($0) } ?? connection
        return first.map { $0 + (levels?.furtherConnection ?? .zero) }
    }

    /// The time from the start of the connection to the complete answer, redirects included and names apart; `nil` if the probe failed.
    ///
    /// It is the sum of the phases: the connection, the TLS handshake, the time to the first byte of the response, and that to its end. For
    /// a TCP connection alone it is the time of the connection.
    package var responseTime: Duration? {
        guard succeeded, let connect else { return nil }
        guard let levels else { return connect }
        return connect + (levels.handshake ?? .zero) + (levels.exchange ?? .zero)
    }

    /// The end of the validity of the certificates of a target that uses TLS, in seconds since 1970; `nil` if it is not known.
    package var certificateEnd: Int64? {
        endpoint.scheme.usesTLS || endpoint.scheme.form.mayBeginTLS ? levels?.tls?.expiration : nil
    }
}

extension PhaseTimes {
    package init(_ report: ProbeReport) {
        self.init()
        for phase in ProbePhase.allCases { self[phase] = report.duration(of: phase) }
    }
}

extension ProbeReport {
    /// Returns the time of a phase, redirects included; `nil` if the probe did not reach it. The resolution is that of the target's own name.
    package func duration(of phase: ProbePhase) -> Duration? {
        switch phase {
        case .resolution: resolution
        case .connect: connect
        case .handshake: levels?.handshake
        case .firstByte: levels?.processing
        case .transfer: levels?.transfer
        }
    }
}

/// The remaining validity of a certificate.
package enum CertificateValidity {
    /// The time in seconds since 1970, rounded up: the remaining time is rounded down.
    private static func seconds(_ moment: Moment) -> Int64 {
        let (seconds, part) = moment.wallClockNanoseconds.floorDivided(by: 1_000_000_000)
        return part > 0 ? seconds + 1 : seconds
    }

    /// Returns the whole days until a certificate expires, rounded down; negative if it has expired. `end` is the end of its validity in
    /// seconds since 1970.
    package static func daysLeft(until end: Int64, at moment: Moment) -> Int {
        Int(end.addingSaturated(-seconds(moment)).floorDivided(by: 86_400).quotient)
    }

    /// Returns an end of the validity for which ``daysLeft(until:at:)`` is a number of days.
    package static func end(daysLeft days: Int, at moment: Moment) -> Int64 {
        seconds(moment).addingSaturated(Int64(days).multipliedSaturated(by: 86_400))
    }
}

extension ServerUpdate {
    /// Returns the whole days until the certificate expires, rounded down; negative if it has expired, and `nil` if that is not known.
    package func certificateDaysLeft(at moment: Moment) -> Int? {
        certificateEnd.map { CertificateValidity.daysLeft(until: $0, at: moment) }
    }
}
