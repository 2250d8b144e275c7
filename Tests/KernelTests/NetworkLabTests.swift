import CLinux
import Expectations
import Foundation
import Glibc
@testable import NetworkLab
import Testing

@Suite(.requiresNamespaces)
struct NetworkLabTests {
    let lab = Lab()

    @Test("a new host has one interface, which is down unless the test asks for loopback")
    func newHost() throws {
        try expectEqual(names(lab.host()), ["lo"])
        try expectEmpty(lab.host().ip("-br link show up"))
        #expect(try lab.host(loopback: true).ip("-br link show up").hasPrefix("lo"))
    }

    @Test("a cable carries packets between two hosts, and its ends have different indexes above 255")
    func cable() throws {
        let (client, server) = try (lab.host(), lab.host())
        try lab.connect(client, "c0", server, "s0")
        try client.ipBatch(["addr add 10.1.0.1/24 dev c0", "link set c0 up"])
        try server.ipBatch(["addr add 10.1.0.2/24 dev s0", "link set s0 up"])
        let port = try server.serve(at: "10.1.0.2")
        let program = try Program(["bash", "-c", "exec 3<>/dev/tcp/10.1.0.2/\(port.port) && echo connected"], on: client)
        try expectEqual(program.nextLine(), "connected")
        #expect(try port.awaitConnection())

        let indexes = try [index("c0", client), index("s0", server)]
        #expect(indexes.allSatisfy { $0 >= 300 } && indexes[0] != indexes[1])
    }

    @Test("another program enters a host by its path")
    func path() throws {
        let (one, other) = try (lab.host(), lab.host())
        try one.add("v0", type: "veth peer name v1 netns \(other.path)")
        try expectEqual(names(other), ["lo", "v1"])
        let program = try Program(["nsenter", "--net=\(other.path)", "ip", "-br", "link", "show", "v1"])
        #expect(try program.nextLine()?.hasPrefix("v1@") == true)
    }

    @Test("a failed command throws its standard error")
    func failure() throws {
        let host = try lab.host()
        let error = #expect(throws: LabError.self) { try host.ip("link set nosuch up") }
        #expect(error?.description.contains("Cannot find device") == true)
    }

    @Test("every kind of interface that the tests need can be made", .requiresTun)
    func kinds() throws {
        let (host, other) = try (lab.host(), lab.host())
        try lab.connect(host, "v0", other, "w0")
        try lab.connect(host, "v1", other, "w1")
        try host.addBridge("br0", ports: ["v0"])
        try host.addMacvlan("mv0", over: "v1")
        try host.add("ifb7", type: "ifb")
        try host.addPersistentTun("tap9", .ethernet)
        let tun = try host.openTun("tun9", type: UInt16(ARPHRD_PPP))
        try expectEqual(names(host), ["br0", "ifb7", "lo", "mv0", "tap9", "tun9", "v0", "v1"])
        #expect(try host.json("link show tun9").contains(#""link_type":"ppp""#))

        try host.ip("link set tun9 up")
        #expect(try !host.ip("link show tun9").contains("NO-CARRIER"))
        try tun.setCarrier(false)
        #expect(try host.ip("link show tun9").contains("NO-CARRIER"))
    }

    @Test("a kernel parameter of one host does not change another host")
    func parameters() throws {
        let (one, other) = try (lab.host(), lab.host())
        try one.set("ipv6.conf.all.disable_ipv6", "1")
        let parameter = ["cat", "/proc/sys/net/ipv6/conf/all/disable_ipv6"]
        try expectEqual(Program(parameter, on: one).nextLine(), "1")
        try expectEqual(Program(parameter, on: other).nextLine(), "0")
    }

    @Test("a named host is listed until its name is deleted, and remains usable afterwards")
    func named() throws {
        let host = try lab.namedHost(loopback: true)
        let name = try #require(host.name)
        expectEqual(access("/run/netns/\(name)", F_OK), 0)
        try host.deleteName()
        #expect(access("/run/netns/\(name)", F_OK) != 0)
        try expectEqual(names(host), ["lo"])
    }

    private func names(_ host: LabHost) throws -> [String] {
        try links(host, "link show").compactMap { $0["ifname"] as? String }.sorted()
    }

    private func index(_ name: String, _ host: LabHost) throws -> Int {
        try #require(links(host, "link show \(name)").first?["ifindex"] as? Int)
    }

    private func links(_ host: LabHost, _ words: String) throws -> [[String: Any]] {
        try #require(JSONSerialization.jsonObject(with: Data(host.json(words).utf8)) as? [[String: Any]])
    }
}

@Suite(.requiresNamespaces)
struct ServerTests {
    @Test(
        "a client of each kind of server gets the connection or the error of that kind",
        arguments: [(Server.Behavior.accepting, Int32(0)), (.queueing, 0), (.closed, ECONNREFUSED), (.stuck, ETIMEDOUT)])
    func behavior(_ behavior: Server.Behavior, _ expected: Int32) throws {
        let host = try Lab().host(loopback: true)
        let server = try host.serve(behavior, at: "127.0.0.1")
        let outcome = try host.perform {
            let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            defer { close(client) }
            // The kernel retransmits once, and the connection then fails with ETIMEDOUT.
            var milliseconds: UInt32 = 300
            setsockopt(client, Int32(IPPROTO_TCP), 18 /* TCP_USER_TIMEOUT */, &milliseconds, 4)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = server.port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            let code = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(client, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            return code == 0 ? 0 : errno
        }
        expectEqual(outcome, expected)
    }
}

struct ProgramTests {
    @Test("a program's lines are read as it writes them, and its exit code at the end")
    func lines() throws {
        let program = try Program(["sh", "-c", "echo one; read word; echo $word; exit 7"], input: .pipe)
        try expectEqual(program.nextLine(), "one")
        try program.write("two\n")
        try expectEqual(program.nextLine(), "two")
        try expectNil(program.nextLine())
        try expectEqual(program.wait(), 7, "\(program.ending)")
    }

    @Test("a line that does not come in time is an error with the program's standard error")
    func silence() throws {
        let program = try Program(["sh", "-c", "echo why >&2; echo; exec sleep 100"])
        try expectEqual(program.nextLine(), "")
        let error = #expect(throws: LabError.self) { try program.nextLine(within: .milliseconds(1)) }
        #expect(error?.description.contains("stderr: why") == true)
    }

    @Test("the built netwatch is found beside the tests")
    func built() throws {
        try expectEqual(access(Programs.netwatch, X_OK), 0)
        #expect(throws: LabError.self) { try Programs.built("nosuch") }
    }

    @Test("a program that a signal ends has the exit code 128 + the signal")
    func signals() throws {
        let program = try Program(["sleep", "100"])
        try program.signal(SIGTERM)
        try expectEqual(program.wait(), 128 + SIGTERM, "\(program.ending)")
        #expect(throws: LabError.self) { try program.signal(SIGTERM) }
    }

    @Test("a program gets its own input, environment and folder")
    func surroundings() throws {
        let program = try Program(
            ["sh", "-c", "pwd; echo $LAB_WORD; cat"], environment: ["LAB_WORD": "blue"], directory: "/", input: .text("end\n"))
        try expectEqual(program.remainingLines(), ["/", "blue", "end"])
    }

    @Test("a program's output can be a file, a terminal, or a closed descriptor")
    func outputs() throws {
        let test = "if [ -t 1 ]; then echo terminal; elif [ -f /dev/fd/1 ]; then echo file; fi"
        let file = try Program(["sh", "-c", test], output: .file)
        try expectEqual(file.wait(), 0, "\(file.ending)")
        expectEqual(file.output, "file\n")
        let terminal = try Program(["sh", "-c", test], output: .terminal)
        try expectEqual(terminal.remainingLines(), ["terminal\r"])
        try expectEqual(Program(["sh", "-c", "echo 2>/dev/null || exit 3"], output: .closed).wait(), 3)
    }

    @Test("a program whose reader closes the pipe gets SIGPIPE")
    func closedReader() throws {
        let program = try Program(["yes"])
        try expectEqual(program.nextLine(), "y")
        program.closeOutput()
        try expectEqual(program.wait(), 128 + SIGPIPE, "\(program.ending)")
    }

    @Test("stopping a program stops its children")
    func children() throws {
        let program = try Program(["sh", "-c", "sleep 100 & echo $!; wait"])
        let child = try #require(Int32(program.nextLine() ?? ""))
        program.stop()
        try expectEnd(of: child)
    }

    @Test(.requiresNamespaces)
    func `the watchdog removes the namespaces and processes that a killed test process leaves`() throws {
        // The end of the test process closes the watchdog's pipe. Releasing this object closes it too.
        var watchdog: Watchdog? = try Watchdog()
        let name = "nwlab-\(getpid())-watchdog"
        let host = try Lab().host()
        try host.run("ip", "netns", "add", name)
        try watchdog?.take(.namespace(name))
        let kept = try Program(["sleep", "100"])
        let orphan = try Program(["sleep", "100"])
        try watchdog?.take(.processGroup(kept.processID))
        try watchdog?.take(.processGroup(orphan.processID))
        watchdog?.release(.processGroup(kept.processID))
        let shell = try #require(watchdog?.processID)
        watchdog = nil
        try expectEnd(of: shell)
        try expectEqual(orphan.wait(), 128 + SIGKILL, "\(orphan.ending)")
        #expect(access("/run/netns/\(name)", F_OK) != 0)
        #expect(throws: LabError.self) { try kept.wait(within: .zero) }
    }

    /// Waits for a process that is not a child of this one.
    private func expectEnd(of process: Int32) throws {
        let descriptor = netwatch_pidfd_open(process)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        expectEqual(poll(&polled, 1, 60_000), 1)
    }
}
