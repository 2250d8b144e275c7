import EventLoop
import Foundation
import HTTPSessionTestKit
import Pacing
import Reachability
import Wire

/// A server of many files that cuts connections, changes its files, sends wrong ranges and pauses, by seeded random draws.
final class FaultyFiles: Sendable {
    /// The behavior of the server for one file.
    enum Behavior: Int, CaseIterable, Sendable {
        case tagged, dated, early, unwell, slow
        /// The file changes while it is being downloaded, with or without another size. It is identified by its tag, or only by
        /// its date.
        case changing, redated
        /// `Content-Range` is sometimes wrong.
        case lying
        /// `Range` is ignored.
        case ignoring
        /// There is no strong validator by which ranges could be combined.
        case weak, nameless

        /// Whether each byte needs to be transferred only once, except for bytes in flight when a connection dies.
        var isContinuable: Bool { rawValue <= Behavior.slow.rawValue }
        var changes: Bool { self == .changing || self == .redated }
    }

    struct File: Sendable {
        let number: Int
        let behavior: Behavior
        /// The sizes of all versions; the last is the current one.
        var sizes: [Int64]
        /// The bytes of response bodies that the server's kernel has sent, and those that the client's kernel has acknowledged,
        /// for all client processes.
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

    /// Ends all connections, and restarts the server after a pause.
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
        var configuration = TestServer.Configuration()
        configuration.namespace = NetworkNamespace(namespace)
        configuration.recordedRequests = 0
        configuration.onDelivery = { request, delivery in
            state.withLock { state in
                guard let number = number(in: request), state.files.indices.contains(number) else { return }
                state.files[number].transmitted += delivery.transmittedBytes
                state.files[number].acknowledged += delivery.acknowledgedBytes
            }
        }
        return try TestServer(at: address, configuration: configuration) { request in
            state.withLock { state in
                guard let number = number(in: request), state.files.indices.contains(number) else { return StubResponse(404) }
                let file = state.files[number]
                // A download that restarts with each connection would never end at the limited rate, so it is served within a
                // second.
                let needsHaste = !file.behavior.isContinuable && !file.behavior.changes
                let speed = needsHaste ? max(bytesPerSecond, Int(file.sizes.last ?? 0)) : bytesPerSecond
                return answer(request, number, &state).slow(bytesPerSecond: speed)
            }
        }
    }

    private static func number(in request: ReceivedRequest) -> Int? { Int(request.path.dropFirst("/file/".count)) }

    private static func answer(_ request: ReceivedRequest, _ number: Int, _ state: inout State) -> StubResponse {
        func chance(_ percent: UInt64) -> Bool { state.random.next() % 100 < percent }
        let behavior = state.files[number].behavior
        if behavior.changes, state.files[number].sizes.count < 4, chance(25) {
            let size = state.files[number].sizes.last ?? 0
            state.files[number].sizes.append(chance(50) ? size : size + Int64(state.random.next() % 100_000))
        }
        if behavior == .unwell, chance(20) { return StubResponse(503).field("Retry-After", "\(state.random.next() % 2)") }
        let file = state.files[number]
        let (version, size) = (file.sizes.count - 1, file.sizes.last ?? 0)
        var reply = body(of: file, request, version, size, lies: behavior == .lying && chance(30))
        let (start, count) = (size - reply.body.count, reply.body.count)
        if behavior == .slow, chance(20), count > 60_000 {
            // 10 KB per second for three seconds.
            let base = Manifest.base(file: number, version: version) + start
            reply.body.segments =
                (0..<3).flatMap { [.pattern(from: base + $0 * 10_000, count: 10_000), .wait(.delay(.seconds(1)))] }
                + [.pattern(from: base + 30_000, count: count - 30_000)]
        }
        if behavior == .early ? chance(50) : chance(8), count > 1 {
            reply = reply.cut(
                afterBodyBytes: Int64(state.random.next() % UInt64(count)), chance(50) ? .reset : .truncated)
        }
        return reply
    }

    private static func body(
        of file: File, _ request: ReceivedRequest, _ version: Int, _ size: Int64, lies: Bool
    ) -> StubResponse {
        let base = Manifest.base(file: file.number, version: version)
        let date = HTTPDate.format(784_111_777 + version * 10)
        var fields: [(String, String)] = [("Date", HTTPDate.format(784_200_000))]
        var validator: String?
        switch file.behavior {
        case .tagged, .early, .unwell, .slow, .changing, .lying, .ignoring: validator = "\"\(file.number)-\(version)\""
        case .dated, .redated: validator = date
        case .weak: fields.append(("ETag", "W/\"\(file.number)\""))
        case .nameless: break
        }
        if let validator { fields.append((validator == date ? "Last-Modified" : "ETag", validator)) }
        let isSame = request["if-none-match"] ?? request["if-modified-since"]
        if let isSame, isSame == validator { return fields.reduce(StubResponse(304)) { $0.field($1.0, $1.1) } }
        var reply = StubResponse(body: StubBody([.pattern(from: base, count: size)]))
        if file.behavior != .ignoring, let validator, let range = request["range"], request["if-range"] == validator,
            let start = Int64(range.dropFirst("bytes=".count).dropLast()), start < size
        {
            reply = StubResponse(206, body: StubBody([.pattern(from: base + start, count: size - start)]))
            let said = lies ? start + 1 : start
            fields.append(("Content-Range", "bytes \(said)-\(size - 1)/\(size)"))
        }
        return fields.reduce(reply) { $0.field($1.0, $1.1) }
    }
}
