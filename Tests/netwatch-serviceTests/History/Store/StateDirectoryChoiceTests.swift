import Console
import Expectations
import Foundation
import NetworkLab
import Testing

@testable import netwatch_service

@Suite struct StateDirectoryChoiceTests {
    @Test(arguments: [
        (["STATE_DIRECTORY": "/var/lib/netwatch:/var/lib/other", "HOME": "/home/ada"], "/var/lib/netwatch"),
        (["XDG_STATE_HOME": "/data", "HOME": "/home/ada"], "/data/netwatch"),
        (["XDG_STATE_HOME": "relative", "HOME": "/home/ada"], "/home/ada/.local/state/netwatch"),
        (["STATE_DIRECTORY": "", "HOME": "/home/ada"], "/home/ada/.local/state/netwatch"),
    ])
    func `the environment names the directory`(environment: [String: String], path: String) throws {
        try expectEqual(StateDirectory.path(configured: nil, environment), path)
        try expectEqual(StateDirectory.path(configured: "/mine", environment), "/mine")
    }

    @Test func `without a home directory, the configuration must name the directory`() {
        #expect(throws: Failure(ExitCode.configuration, "state: HOME is not set; name the directory with --state")) {
            try StateDirectory.path(configured: nil, [:])
        }
    }

    @Test func `the table of sockets names the listeners of a port`() {
        let table = """
              sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
               0: 0100007F:23AA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0 100 0 0 10 0
               1: 0100007F:23AA 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 4343 1 0 20 4 30 10 -1
               2: damaged
            """
        expectEqual(SocketTable.listeners(in: table, port: 9130), ["4242"])
        expectEmpty(SocketTable.listeners(in: table, port: 80))
        expectEmpty(SocketTable.listeners(in: "", port: 80))
    }

    @Test(arguments: [
        ("netwatch-servic", "/usr/libexec/netwatch-service", "netwatch-service"),
        ("netwatch-servic", "/usr/libexec/netwatch-service (deleted)", "netwatch-service"),
        ("nginx", "/usr/sbin/nginx", "nginx"), ("worker", "/usr/sbin/nginx", "worker"), ("nginx", nil, "nginx"),
    ])
    func `the owner of a port has the name of its executable if the kernel has cut it`(
        name: String, executable: String?, expected: String
    ) {
        expectEqual(PortOwner.name(name, executable: executable), expected)
    }
}

@Suite struct StateDirectoryTests {
    @Test func `the directory is created for its user alone, and is found again`() throws {
        let scratch = try ScratchDirectory()
        let directory = StateDirectory(path: scratch.file("a/b"))
        try directory.create()
        try directory.create()
        let permissions = try FileManager.default.attributesOfItem(atPath: directory.path)[.posixPermissions] as? Int
        expectEqual(permissions, 0o700)
        #expect(throws: StoreError.self) { try StateDirectory(path: "/dev/null/netwatch").create() }
    }
}
