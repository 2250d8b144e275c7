import EventLoop
import Foundation
import HTTPSessionTestKit
import Pacing

/// A server of many files that is cut off, changes them, lies and rests, by seeded draws.
final class FaultyFiles: Sendable {
    /// How the server is about one file.
    enum Manner: Int, CaseIterable, Sendable {
        case tagged, dated, early, unwell, slow
        /// The file changes while it is being fetched: of another size, or of the same. By its tag, or by its date alone.
        case changing, redated
        /// `Content-Range` lies now and then.
        case lying
        /// `Range` is not known.
        case ignoring
        /// There is nothing by which parts could be put together.
        case weak, nameless

        /// Whether its bytes need to come only once, but for what is under way when a connection dies.
        var isContinuable: Bool { rawValue <= Manner.slow.rawValue }
        var changes: Bool { self == .changing || self == .redated }
    }

    struct File: Sendable {
        let number: Int
        let manner: Manner
        /// The sizes of all versions there have been; the last is the present one.
        var sizes: [Int64]
        /// Bytes of responses' bodies that have left the server's kernel, and of these that the client's kernel has acknowledged, whichever
        /// process was there for them.
        var transmitted: Int64 = 0
        var acknowledged: Int64 = 0
    }

    private struct State: Sendable {
        var files: [File]
        var random: SplitMix64
    }

    private let state: Locked<State>
    private let address: ListeningAddress
    private let namespace: String
    private let bytesPerSecond: Int
    private let server: Locked<TestServer?>
    private let count = Locked(0)
    let port: UInt16

    init(_ files: [File], seed: UInt64, bytesPerSecond: Int, namespace: String) throws {
        state = Locked(State(files: files, random: SplitMix64(seed: seed)))
        self.namespace = namespace
        self.bytesPerSecond = bytesPerSecond
        let first = try Self.start(.ip("203.0.113.9", port: 0), namespace, state, bytesPerSecond)
        port = first.port
        address = .ip("203.0.113.9", port: first.port)
        server = Locked(first)
    }

    var files: [File] { state.withLock { $0.files } }

    /// Ends all connections, and is back after a while.
    func restart(after pause: Duration) async throws {
        stop()
        try? await Task.sleep(for: pause)
        let next = try Self.start(address, namespace, state, bytesPerSecond)
        server.withLock { $0 = next }
        count.withLock { $0 += 1 }
    }

    var restarts: Int { count.withLock { $0 } }

    func stop() { server.withLock { $0.take() }?.stop() }

    private static func start(
        _ address: ListeningAddress, _ namespace: String, _ state: Locked<State>, _ bytesPerSecond: Int
    ) throws -> TestServer {
        var options = TestServer.Options()
        options.namespace = namespace
        options.recordedRequests = 0
        options.onDelivery = { request, delivery in
            state.withLock { state in
                guard let number = number(in: request), state.files.indices.contains(number) else { return }
                state.files[number].transmitted += delivery.transmittedBytes
                state.files[number].acknowledged += delivery.acknowledgedBytes
            }
        }
        return try TestServer(at: address, options: options) { request in
            state.withLock { state in
                guard let number = number(in: request), state.files.indices.contains(number) else { return StubResponse(404) }
                let file = state.files[number]
                // What begins anew with each connection would never end: it comes within a second, if the machine can.
                let needsHaste = !file.manner.isContinuable && !file.manner.changes
                let speed = needsHaste ? max(bytesPerSecond, Int(file.sizes.last ?? 0)) : bytesPerSecond
                return answer(request, number, &state).slow(bytesPerSecond: speed)
            }
        }
    }

    private static func number(in request: ReceivedRequest) -> Int? { Int(request.path.dropFirst("/file/".count)) }

    private static func answer(_ request: ReceivedRequest, _ number: Int, _ state: inout State) -> StubResponse {
        func chance(_ percent: UInt64) -> Bool { state.random.next() % 100 < percent }
        let manner = state.files[number].manner
        if manner.changes, state.files[number].sizes.count < 4, chance(25) {
            let size = state.files[number].sizes.last ?? 0
            state.files[number].sizes.append(chance(50) ? size : size + Int64(state.random.next() % 100_000))
        }
        if manner == .unwell, chance(20) { return StubResponse(503).field("Retry-After", "\(state.random.next() % 2)") }
        let file = state.files[number]
        let (version, size) = (file.sizes.count - 1, file.sizes.last ?? 0)
        var reply = body(of: file, request, version, size, lies: manner == .lying && chance(30))
        let (start, count) = (size - reply.body.count, reply.body.count)
        if manner == .slow, chance(20), count > 60_000 {
            // At 10 KB a second for three seconds.
            let base = Manifest.base(file: number, version: version) + start
            reply.body.segments =
                (0..<3).flatMap { [.pattern(from: base + $0 * 10_000, count: 10_000), .wait(.delay(.seconds(1)))] }
                + [.pattern(from: base + 30_000, count: count - 30_000)]
        }
        if manner == .early ? chance(50) : chance(8), count > 1 {
            reply = reply.cut(
                afterBodyBytes: Int64(state.random.next() % UInt64(count)), chance(50) ? .reset : .truncated)
        }
        return reply
    }

    private static func body(
        of file: File, _ request: ReceivedRequest, _ version: Int, _ size: Int64, lies: Bool
    ) -> StubResponse {
        let base = Manifest.base(file: file.number, version: version)
        let date = HTTPDateText.at(784_111_777 + version * 10)
        var fields: [(String, String)] = [("Date", HTTPDateText.at(784_200_000))]
        var validator: String?
        switch file.manner {
        case .tagged, .early, .unwell, .slow, .changing, .lying, .ignoring: validator = "\"\(file.number)-\(version)\""
        case .dated, .redated: validator = date
        case .weak: fields.append(("ETag", "W/\"\(file.number)\""))
        case .nameless: break
        }
        if let validator { fields.append((validator == date ? "Last-Modified" : "ETag", validator)) }
        let isSame = request["if-none-match"] ?? request["if-modified-since"]
        if let isSame, isSame == validator { return fields.reduce(StubResponse(304)) { $0.field($1.0, $1.1) } }
        var reply = StubResponse(body: StubBody([.pattern(from: base, count: size)]))
        if file.manner != .ignoring, let validator, let range = request["range"], request["if-range"] == validator,
            let start = Int64(range.dropFirst("bytes=".count).dropLast()), start < size
        {
            reply = StubResponse(206, body: StubBody([.pattern(from: base + start, count: size - start)]))
            let said = lies ? start + 1 : start
            fields.append(("Content-Range", "bytes \(said)-\(size - 1)/\(size)"))
        }
        return fields.reduce(reply) { $0.field($1.0, $1.1) }
    }
}

/// IMF-fixdate (RFC 9110 section 5.6.7) of seconds since 1970.
enum HTTPDateText {
    static func at(_ seconds: Int) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: Date(timeIntervalSince1970: Double(seconds)))
    }
}
