import Glibc
import Synchronization

/// `URL COUNT CONCURRENCY [AUTHORITY]`: COUNT requests, CONCURRENCY at a time, for each of the HTTP clients. AUTHORITY is the file of
/// a certificate that the client has to trust, for URLs of https.
package struct RequestLoad: Sendable {
    package let url: String
    package let count: Int
    package let concurrency: Int
    package let authority: String?
    /// The arguments that only one of the clients has.
    package let further: ArraySlice<String>

    package init?(_ words: some Collection<String>) {
        let words = Array(words)
        guard words.count >= 3, let count = Int(words[1]), let concurrency = Int(words[2]), count > 0, concurrency > 0 else {
            return nil
        }
        (url, self.count, self.concurrency) = (words[0], count, concurrency)
        let isSecure = url.hasPrefix("https:")
        authority = isSecure && words.count > 3 ? words[3] : nil
        further = isSecure ? [] : words[3...]
    }

    /// Runs a first request, which loads its libraries and buffers, and after which the client knows the server's version of HTTP.
    /// Over TLS, `concurrency` requests at a time then open the connections, so that no handshake is measured.
    package func warmUp(_ request: @escaping @Sendable () async throws -> Int) async throws {
        _ = try await request()
        guard authority != nil else { return }
        try await withThrowingTaskGroup { group in
            for _ in 0..<concurrency { group.addTask { _ = try await request() } }
            try await group.waitForAll()
        }
    }

    /// Runs `request` `count` times. It returns the length of the body. The result has the format of `Limits/http-multi.c`.
    package func run(_ request: @escaping @Sendable () async throws -> Int) async throws -> String {
        let (asked, received) = (Counter(), Counter())
        let (start, before) = (ContinuousClock.now, OwnFigures.processorSeconds)
        try await withThrowingTaskGroup { group in
            for _ in 0..<concurrency {
                group.addTask {
                    while asked.add(1) <= count { _ = received.add(try await request()) }
                }
            }
            try await group.waitForAll()
        }
        let elapsed = (ContinuousClock.now - start) / .seconds(1)
        let processor = OwnFigures.processorSeconds - before
        return "\(Int((Double(count) / elapsed).rounded())) \(processor) \(received.value)"
    }

    /// Runs a program. It prints a thrown error and exits with 1.
    package static func main(_ body: @Sendable () async throws -> Void) async {
        do {
            try await body()
        } catch {
            write("\(error)\n", to: STDERR_FILENO)
            exit(1)
        }
    }

    /// Prints the program's usage and exits.
    package static func usage(_ text: String) -> Never {
        write("usage: \(text)\n", to: STDERR_FILENO)
        exit(64)
    }

    /// Writes the text at once: print(_:) would buffer it. FileHandle would load all of Foundation, whose pages with ICU would be
    /// counted as the client's.
    package static func write(_ text: String, to descriptor: Int32) {
        var text = text
        text.withUTF8 { bytes in
            var written = 0
            while written < bytes.count {
                let count = Glibc.write(descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written)
                if count < 0 && errno != EINTR { return }
                written += max(0, count)
            }
        }
    }
}

/// A counter that several tasks share.
package final class Counter: Sendable {
    private let count = Atomic(0)

    package init() {}

    /// Adds to the count. - Returns: the new count.
    package func add(_ number: Int) -> Int { count.add(number, ordering: .relaxed).newValue }
    package var value: Int { count.load(ordering: .relaxed) }
}

/// A response other than the measured one.
package struct UnexpectedStatus: Error {
    package let code: Int
    package init(code: Int) { self.code = code }
}
