import Expectations
import Foundation
import Glibc
import NetworkLab
import Reachability
import Testing

/// Namespaces by name, which may be removed, and their own resolver configuration.
@Suite(.requiresNamespaces)
struct NamespaceTests {
    @Test func `a namespace whose name is deleted ends its monitor with the cause no interface`() throws {
        let network = try Network(named: true)
        try network.uplink("v0", "10.1.0.1/24")
        try network.host.ip("route add default via 10.1.0.254")
        let name = try #require(network.host.name)
        let witness = try Witness(network.host, by: name, sees: "satisfied v0 wired 4 via 10.1.0.254")
        let netns = try #require(witness.program.hello["netns"] as? [String: Any])
        #expect(netns["name"] as? String == name && netns["inode"] as? UInt64 == inode("/run/netns/\(name)"))

        try network.host.deleteName()
        try witness.expect("unsatisfied link/no-interface", reasons: "interface-changed families-changed cause-changed") {
            #expect($0.interfaces.isEmpty && $0.detail.contains("has been removed"))
        }
        try witness.expectEnd(exitCode: 1)
        #expect(witness.program.program.standardError.contains("'\(name)': it no longer exists"))
    }

    @Test func `a namespace watched through a symbolic link ends when its name or the link is deleted`() throws {
        for removesLink in [false, true] {
            let network = try Network(named: true)
            try network.uplink("v0", "10.1.0.1/24")
            try network.host.ip("route add default via 10.1.0.254")
            let name = try #require(network.host.name)
            let scratch = try ScratchDirectory()
            let (link, middle) = (scratch.file("link"), scratch.file("middle"))
            #expect(symlink("middle", link) == 0 && symlink("/run/netns/\(name)", middle) == 0)
            let witness = try Witness(network.host, by: link, sees: "satisfied v0 wired 4 via 10.1.0.254")

            if removesLink { expectEqual(unlink(middle), 0) } else { try network.host.deleteName() }
            try witness.expect("unsatisfied link/no-interface", reasons: "interface-changed")
            try witness.expectEnd(exitCode: 1)
            #expect(witness.program.program.standardError.contains("'\(link)': it no longer exists"))
        }
    }

    @Test func `a monitor that has ended keeps no socket open`() throws {
        let host = try Lab().namedHost()
        let name = try #require(host.name)
        let observer = try LibraryObserver(MonitorConfiguration(namespace: NetworkNamespace(name)))
        try expectEqual(observer.nextPath()?.line, "unsatisfied link/no-interface")
        let sockets = try netlinkSockets(of: host)
        #expect(sockets >= 2)

        try host.deleteName()
        try expectEqual(observer.nextPath()?.line, "unsatisfied link/no-interface")
        try expectNil(observer.nextPath())
        observer.session.stop()
        // A program that another test is starting holds all descriptors until execve(2).
        #expect(try (0..<10_000).contains { _ in try netlinkSockets(of: host) == 0 })
    }

    @Test(.requiresWritableEtc)
    func `a namespace's own resolver configuration is followed when it is added and removed`() throws {
        let network = try Network(named: true)
        let name = try #require(network.host.name)
        let directory = "/etc/netns/\(name)"
        let isMine = !FileManager.default.fileExists(atPath: "/etc/netns")
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer {
            try? FileManager.default.removeItem(atPath: directory)
            if isMine { rmdir("/etc/netns") }
        }
        try "search example.com\n".write(toFile: "\(directory)/resolv.conf", atomically: true, encoding: .utf8)
        try network.uplink("v0", "10.1.0.1/24")
        try network.host.ip("route add default via 10.1.0.254")
        let witness = try Witness(network.host, by: name, sees: "satisfied v0 wired 4 via 10.1.0.254")

        try "nameserver 192.0.2.53\n".write(toFile: "\(directory)/resolv.conf", atomically: true, encoding: .utf8)
        try witness.expectNext(reasons: "dns-changed") { #expect($0.hasDNS) }
        try "# nothing\n".write(toFile: "\(directory)/resolv.conf", atomically: false, encoding: .utf8)
        try witness.expectNext(reasons: "dns-changed") { #expect(!$0.hasDNS) }
        try FileManager.default.removeItem(atPath: "\(directory)/resolv.conf")
        try "nameserver 192.0.2.54\n".write(toFile: "\(directory)/resolv.conf", atomically: true, encoding: .utf8)
        try witness.expect(reasons: "dns-changed") { #expect($0.hasDNS) }
    }

    private func inode(_ path: String) -> UInt64? {
        (try? FileManager.default.attributesOfItem(atPath: path))?[.systemFileNumber] as? UInt64
    }

    /// Counts the netlink sockets of a host. A socket that a command opens meanwhile is not bound to a group.
    private func netlinkSockets(of host: LabHost) throws -> Int {
        // The columns of /proc/net/netlink are sk, protocol, port, groups, …; the kernel's own sockets have port 0.
        let table = try host.perform { try String(contentsOfFile: "/proc/thread-self/net/netlink", encoding: .utf8) }
        return table.split(separator: "\n").dropFirst().count { row in
            let columns = row.split(separator: " ")
            return columns.count > 3 && columns[2] != "0"
        }
    }
}
