import Expectations
import FoundationEssentials
import Glibc
import NetworkLab
import Testing

@testable import netwatch_service

@Suite struct ServiceManagerTests {
    @Test func `the manager receives each notification as one datagram`() throws {
        let manager = try FakeManager(abstract: false)
        defer { manager.close() }
        let service = ServiceManager(["NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": "2000000"], processID: 7)
        service.notify(.ready(status: "3 of 5 targets up, uplink eth0"))
        expectEqual(manager.receive(), "READY=1\nSTATUS=3 of 5 targets up, uplink eth0")
        service.notify(.reloading(monotonicMicroseconds: 42))
        expectEqual(manager.receive(), "RELOADING=1\nMONOTONIC_USEC=42")
        service.notify(.watchdog)
        expectEqual(manager.receive(), "WATCHDOG=1")
        service.notify(.stopping)
        expectEqual(manager.receive(), "STOPPING=1")
        expectEqual(service.watchdogInterval, .seconds(2))
    }

    @Test func `an abstract socket is reached`() throws {
        let manager = try FakeManager(abstract: true)
        defer { manager.close() }
        ServiceManager(["NOTIFY_SOCKET": manager.address]).notify(.watchdog)
        expectEqual(manager.receive(), "WATCHDOG=1")
    }

    @Test func `a status cannot add an assignment`() {
        expectEqual(ServiceManager.Notification.status("eth0\nMAINPID=1").text, "STATUS=eth0 MAINPID=1")
    }

    @Test(arguments: [
        [:], ["NOTIFY_SOCKET": ""], ["NOTIFY_SOCKET": "relative"], ["NOTIFY_SOCKET": "/missing/socket"],
        ["NOTIFY_SOCKET": "/" + String(repeating: "x", count: 200)],
    ])
    func `without a usable socket, notifications are lost`(environment: [String: String]) {
        ServiceManager(environment).notify(.stopping)
    }

    @Test func `the watchdog of another process is not fed`() {
        let environment = ["NOTIFY_SOCKET": "/run/x", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "8"]
        expectNil(ServiceManager(environment, processID: 7).watchdogInterval)
        expectEqual(ServiceManager(environment, processID: 8).watchdogInterval, .seconds(1))
        expectNil(ServiceManager(["WATCHDOG_USEC": "1000000"], processID: 8).watchdogInterval)
    }
}

@Suite struct WatchdogTests {
    private static let second: Int64 = 1_000_000_000

    // The macro cannot call a mutating method.
    private func expect(_ expected: Bool, _ result: Bool, location: SourceLocation = #_sourceLocation) {
        #expect(result == expected, sourceLocation: location)
    }

    @Test func `the manager is notified after a turn of both parts, at half the interval`() {
        var watchdog = Watchdog(interval: .seconds(10), now: 0)
        watchdog.finished(.monitor)
        watchdog.finished(.keeper)
        expect(false, watchdog.takeNotification(at: 4 * Self.second))
        expect(true, watchdog.takeNotification(at: 5 * Self.second))
    }

    @Test func `a part that stopped is not reported as working`() {
        var watchdog = Watchdog(interval: .seconds(10), now: 0)
        watchdog.finished(.monitor)
        watchdog.finished(.keeper)
        expect(true, watchdog.takeNotification(at: 5 * Self.second))
        watchdog.finished(.keeper)
        expect(false, watchdog.takeNotification(at: 10 * Self.second))
        expect(false, watchdog.takeNotification(at: 100 * Self.second))
        watchdog.finished(.monitor)
        expect(true, watchdog.takeNotification(at: 101 * Self.second))
    }
}

@Suite struct InheritedSocketsTests {
    @Test func `listening sockets are sorted by their family`() throws {
        let sockets = [try Self.listener(AF_INET), try Self.listener(AF_UNIX), open("/dev/null", O_RDONLY)]
        defer { for descriptor in sockets { close(descriptor) } }
        let copies = try Self.consecutiveCopies(of: sockets)
        defer { for descriptor in copies { close(descriptor) } }
        let first = copies[0]
        let inherited = InheritedSockets(["LISTEN_PID": "7", "LISTEN_FDS": "3"], processID: 7, first: first)
        expectEqual(inherited.internet, [first])
        expectEqual(inherited.local, [first + 1])
        expectEqual(inherited.unusable, [first + 2])
        expectEqual(fcntl(first, F_GETFD), FD_CLOEXEC)
    }

    @Test(arguments: [
        [:], ["LISTEN_PID": "8", "LISTEN_FDS": "3"], ["LISTEN_PID": "7", "LISTEN_FDS": "-1"], ["LISTEN_FDS": "3"],
        ["LISTEN_PID": "7", "LISTEN_FDS": "x"], ["LISTEN_PID": "7", "LISTEN_FDS": "99999999999"],
    ])
    func `sockets of another process are left alone`(environment: [String: String]) {
        let inherited = InheritedSockets(environment, processID: 7, first: 200)
        #expect(inherited.internet.isEmpty && inherited.local.isEmpty && inherited.unusable.isEmpty)
    }

    /// Returns copies of descriptors that follow each other, as the manager passes them. Other tests use descriptors at the same time, so
    /// no number is taken by force.
    private static func consecutiveCopies(of descriptors: [Int32]) throws -> [Int32] {
        for base in stride(from: Int32(500), to: 900, by: 10) {
            let copies = descriptors.map { fcntl($0, F_DUPFD_CLOEXEC, base) }
            if copies.enumerated().allSatisfy({ $1 == copies[0] + Int32($0) }), copies[0] > 0 { return copies }
            for descriptor in copies where descriptor >= 0 { close(descriptor) }
        }
        throw LabError("no consecutive descriptors are free")
    }

    private static func listener(_ family: Int32) throws -> Int32 {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue), 0)
        // A Unix socket needs a name before it can listen; binding only the family chooses an abstract one (unix(7)).
        if family == AF_UNIX {
            var name = sockaddr(sa_family: sa_family_t(AF_UNIX), sa_data: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
            try #require(bind(descriptor, &name, 2) == 0)
        }
        try #require(listen(descriptor, 1) == 0)
        return descriptor
    }
}

/// The receiving end of the notifications.
private struct FakeManager {
    let address: String
    private let descriptor: Int32
    private let path: String?

    init(abstract: Bool) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        let name = "/tmp/netwatch-manager-\(getpid())-\(UInt32.random(in: 0 ... .max))"
        (address, path) = (abstract ? "@\(name.dropFirst())" : name, abstract ? nil : name)
        var socketAddress = sockaddr_un()
        socketAddress.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(address.utf8)
        if abstract { bytes[0] = 0 }
        withUnsafeMutableBytes(of: &socketAddress.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(2 + bytes.count + (abstract ? 0 : 1))
        let descriptor = descriptor
        let result = withUnsafeBytes(of: socketAddress) { raw in
            raw.baseAddress.map { bind(descriptor, $0.assumingMemoryBound(to: sockaddr.self), length) } ?? -1
        }
        try #require(result == 0)
    }

    func receive() -> String {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }

    func close() {
        Glibc.close(descriptor)
        if let path { unlink(path) }
    }
}
