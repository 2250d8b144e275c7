import EventLoop
import Expectations
import Foundation
import NetworkLab
import Testing

@testable import Reachability

/// Collects answers. A test can wait for each.
private final class Answers: Sendable {
    private let given = Locked<[UInt64: LookupAnswer]>([:])
    private let arrival: Waker

    init() throws { arrival = try Waker() }

    var sink: @Sendable (LookupAnswer) -> Void {
        { answer in
            self.given.withLock { $0[answer.id] = answer }
            self.arrival.wake()
        }
    }

    var count: Int { given.withLock { $0.count } }

    func has(_ id: UInt64) -> Bool { given.withLock { $0[id] != nil } }

    func wait(for id: UInt64, seconds: Int64 = 120) throws -> LookupAnswer {
        let deadline = MonotonicClock.now() + seconds * 1_000_000_000
        while MonotonicClock.now() < deadline {
            if let answer = given.withLock({ $0[id] }) { return answer }
            var poller = pollfd(fd: arrival.descriptor, events: Int16(POLLIN), revents: 0)
            if poll(&poller, 1, 100) > 0 { arrival.acknowledge() }
        }
        throw ProbeNamespace.Failure(description: "no answer to \(id)")
    }
}

@Suite struct NameResolverTests {
    @Test func `a name in the hosts file is resolved, each address once`() throws {
        let answers = try Answers()
        let resolver = try NameResolver(namespace: nil, sink: answers.sink)
        resolver.resolve(LookupRequest(id: 1 << 32, name: "localhost", families: [.v4, .v6]))
        resolver.resolve(LookupRequest(id: 2 << 32, name: "localhost", families: [.v4]))
        let both = try answers.wait(for: 1 << 32)
        expectEqual(both.code, 0)
        #expect(both.addresses.contains(IPAddress(v4: 0x7f00_0001)))
        expectEqual(Set(both.addresses).count, both.addresses.count)
        try expectEqual(answers.wait(for: 2 << 32).addresses, [IPAddress(v4: 0x7f00_0001)])
        expectEqual(resolver.files, .notAsked)
    }

    @Test func `a lookup in a namespace that does not exist is answered with ENOENT`() throws {
        let answers = try Answers()
        let resolver = try NameResolver(namespace: NetworkNamespace("there-is-none"), sink: answers.sink)
        resolver.resolve(LookupRequest(id: 1, name: "localhost", families: [.v4]))
        try expectEqual(answers.wait(for: 1), LookupAnswer(id: 1, code: EAI_SYSTEM, errno: ENOENT))
    }

    @Test func `a lookup after the resolver is stopped has no answer`() throws {
        let answers = try Answers()
        let resolver = try NameResolver(namespace: nil, sink: answers.sink)
        resolver.stop()
        resolver.resolve(LookupRequest(id: 1, name: "localhost", families: [.v4]))
        expectEqual(answers.count, 0)
    }
}

@Suite(.requiresNamespaces, .requiresMounts) struct NamespaceResolverTests {
    /// A directory such as /etc/netns/NAME. It is removed with this object.
    private final class Files: Sendable {
        let path: String

        init(_ files: [String: String]) throws {
            path = NSTemporaryDirectory() + "resolver-\(getpid())-\(UUID().uuidString)"
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            for (name, text) in files { try text.write(toFile: "\(path)/\(name)", atomically: false, encoding: .utf8) }
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    private static let configuration = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"
    /// Minutes pass before a lookup without an answer fails: each of the five attempts waits twice as long as the one before.
    private static let patient = ["resolv.conf": "nameserver 127.0.0.1\noptions timeout:30 attempts:5\n"]

    private struct Host {
        let namespace: ProbeNamespace
        let server: NameServer?
        let files: Files
        let resolver: NameResolver
        let answers: Answers

        init(
            _ behavior: NameServer.Behavior?, _ files: [String: String] = ["resolv.conf": configuration],
            queue: Int = NameResolver.queueLimit
        ) throws {
            namespace = try ProbeNamespace()
            server = try behavior.map { [path = namespace.path] in try NameServer($0, in: path) }
            self.files = try Files(files)
            answers = try Answers()
            resolver = try NameResolver(
                namespace: NetworkNamespace(namespace.path), filesDirectory: self.files.path, queue: queue, sink: answers.sink)
        }

        func ask(_ id: UInt64, _ name: String = "server.example") throws -> LookupAnswer {
            resolver.resolve(LookupRequest(id: id, name: name, families: [.v4, .v6]))
            return try answers.wait(for: id)
        }
    }

    @Test func `two namespaces in one process resolve names with their own name servers`() throws {
        let (one, other) = (IPAddress(v4: 0xc000_0201), IPAddress(v4: 0xc633_6401))
        let left = try Host(.address("\(one)"))
        let right = try Host(.address("\(other)"))
        try #require(try left.ask(1).addresses == [one])
        expectEqual(left.resolver.files, .arranged(["resolv.conf"]))
        for id in 2...20 as ClosedRange<UInt64> {
            try expectEqual(right.ask(id).addresses, [other])
            try expectEqual(left.ask(id).addresses, [one])
        }
    }

    @Test func `a namespace's own hosts file is used by its resolver and not by the rest of the process`() throws {
        let host = try Host(nil, ["hosts": "192.0.2.9 only-here.example\n"])
        try expectEqual(host.ask(1, "only-here.example").addresses, [IPAddress(v4: 0xc000_0209)])
        expectEqual(host.resolver.files, .arranged(["hosts"]))
        #expect(try !String(contentsOfFile: "/etc/hosts", encoding: .utf8).contains("only-here"))
    }

    @Test func `an IPv4-mapped IPv6 address is resolved as IPv4, once`() throws {
        let host = try Host(nil, ["hosts": "::ffff:192.0.2.9 mapped.example\n192.0.2.9 mapped.example\n"])
        try expectEqual(host.ask(1, "mapped.example").addresses, [IPAddress(v4: 0xc000_0209)])
    }

    @Test func `the waiting lookup of a removed target is not answered`() throws {
        let host = try Host(.silent)
        let stuck = UInt64(NameResolver.defaultThreads)
        for target in 1...stuck {
            host.resolver.resolve(LookupRequest(id: target << 32, name: "x\(target).example", families: [.v4]))
        }
        // The stuck lookups keep all threads busy for a second, so these wait.
        host.resolver.resolve(LookupRequest(id: 100 << 32, name: "gone.example", families: [.v4]))
        host.resolver.resolve(LookupRequest(id: 101 << 32, name: "localhost", families: [.v4]))
        host.resolver.cancel(TargetID(100))
        _ = try host.answers.wait(for: 101 << 32)
        for target in 1...stuck { _ = try host.answers.wait(for: target << 32) }
        #expect(!host.answers.has(100 << 32))
    }

    @Test func `a replaced hosts file is used after the resolver is notified`() throws {
        let host = try Host(nil, ["hosts": "192.0.2.9 moved.example\n"])
        try expectEqual(host.ask(1, "moved.example").addresses, [IPAddress(v4: 0xc000_0209)])
        // The file is replaced by rename: the thread has the former file mounted.
        try "192.0.2.10 moved.example\n".write(toFile: host.files.path + "/hosts", atomically: true, encoding: .utf8)
        host.resolver.configurationChanged()
        try expectEqual(host.ask(2, "moved.example").addresses, [IPAddress(v4: 0xc000_020a)])
    }

    @Test func `a namespace directory without resolver files changes nothing`() throws {
        let host = try Host(nil, [:])
        try expectEqual(host.ask(1, "localhost").code, 0)
        expectEqual(host.resolver.files, NamespaceFiles.Outcome.none)
    }

    @Test func `a name server that does not know the name gives EAI_NONAME`() throws {
        try expectEqual(Host(.code(3)).ask(1).code, EAI_NONAME)
    }

    @Test func `a name server that fails gives EAI_AGAIN before the timeout`() throws {
        let answer = try Host(.code(2), Self.patient).ask(1)
        expectEqual(answer.code, EAI_AGAIN)
        #expect(answer.elapsedNanoseconds < 30_000_000_000)
    }

    @Test func `a silent name server gives EAI_AGAIN after the timeout`() throws {
        let answer = try Host(.silent).ask(1)
        expectEqual(answer.code, EAI_AGAIN)
        #expect(answer.elapsedNanoseconds >= 900_000_000)
    }

    @Test func `a port without a name server gives EAI_AGAIN before the timeout`() throws {
        let answer = try Host(nil, Self.patient).ask(1)
        expectEqual(answer.code, EAI_AGAIN)
        #expect(answer.elapsedNanoseconds < 30_000_000_000)
    }

    @Test func `a lookup beyond the queue's limit is refused at once, and stopping does not wait for stuck threads`() throws {
        let host = try Host(.silent, Self.patient, queue: 256)
        let count = UInt64(NameResolver.defaultThreads + 256)
        let started = MonotonicClock.now()
        for target in 1...(count + 10) {
            host.resolver.resolve(LookupRequest(id: target << 32, name: "x\(target).example", families: [.v4]))
        }
        let last = try host.answers.wait(for: (count + 10) << 32)
        expectEqual(last, LookupAnswer(id: (count + 10) << 32, code: EAI_AGAIN))
        host.resolver.stop()
        #expect(MonotonicClock.now() - started < 120_000_000_000)
    }
}
