import COpenSSL

@testable import Certificates

extension FuzzDriver {
    /// The certificate of a server and that of its issuer, in DER, and the OCSP response behind them that the server staples.
    static let staple = FuzzDriver(name: "staple") { input in
        let time: Int64 = 1_796_040_000
        try input.withUnsafeBytes { bytes in
            var next = bytes.bindMemory(to: UInt8.self).baseAddress
            func certificate() -> OpaquePointer? {
                let start = UnsafeRawPointer(next)
                let used = start.flatMap { start in bytes.baseAddress.map { start - $0 } } ?? 0
                return OpenSSLErrors.contained { d2i_X509(nil, &next, bytes.count - used) }
            }
            let own = certificate()
            let issuer = own == nil ? nil : certificate()
            defer {
                X509_free(own)
                X509_free(issuer)
            }
            let used = UnsafeRawPointer(next).flatMap { end in bytes.baseAddress.map { end - $0 } } ?? 0
            let part = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(own == nil ? 0 : used))
            guard let response = OpenSSLErrors.contained({ ReceivedOCSPResponse(part) }) else { return }
            try require(part.count <= StapledResponse.maximumBytes, "a response of \(part.count) bytes")
            guard response.isSuccessful, let own, let issuer else { return }
            let (facts, validity) = OpenSSLErrors.contained { response.judged(for: own, by: issuer, at: time) }
            try require(validity?.contains(time) ?? true, "times: \(facts) in \(String(describing: validity))")
            try check(facts)
            let again = OpenSSLErrors.contained { response.judged(for: own, by: issuer, at: time) }
            try require(again.response == facts && again.validity == validity, "another judgment: \(again.response)")
            if let date = facts.thisUpdate {
                let early = OpenSSLErrors.contained { response.judged(for: own, by: issuer, at: date) }
                try require(![.stale, .notYetValid].contains(early.response.status), "at its own date: \(early.response)")
                try check(early.response)
            }
            // At both ends of the times, the facts are the same.
            guard let validity, facts.signer != nil else { return }
            for other in [validity.lowerBound, validity.upperBound &- 1] {
                let edge = OpenSSLErrors.contained { response.judged(for: own, by: issuer, at: other) }
                try require(edge.response == facts, "at \(other): \(edge.response) instead of \(facts)")
            }
        }
    }

    private static func check(_ facts: StapledResponse) throws {
        let isSigned = facts.signer != nil
        try require(isSigned == (facts.thisUpdate != nil), "a date without a signature: \(facts)")
        switch facts.status {
        case .good, .revoked, .unknown, .stale, .notYetValid: try require(isSigned, "a status without a signature: \(facts)")
        case .unverified, .otherCertificate, .malformed, .unsuccessful:
            try require(facts == StapledResponse(facts.status), "facts without a signature: \(facts)")
        }
        try require(facts.status != .revoked || facts.revokedAt != nil, "a revocation without a time: \(facts)")
        try require(facts.nextUpdate ?? .max >= facts.thisUpdate ?? .min, "dates: \(facts)")
        try require((facts.signer?.utf8.count ?? 0) <= 1024 * 3, "a long signer: \(facts)")
        try require((facts.revocationReason?.utf8.count ?? 0) <= 64, "a long reason: \(facts)")
    }
}
