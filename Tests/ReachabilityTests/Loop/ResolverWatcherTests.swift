import Expectations
import Glibc
import NetworkLab
import Testing

@testable import Reachability

@Suite struct ResolverWatcherTests {
    private let machine: TemporaryDirectory

    init() throws {
        machine = try TemporaryDirectory()
        try machine.makeDirectory("etc")
        try machine.makeDirectory("run")
    }

    private func watcher(_ namespace: String? = nil) throws -> ResolverWatcher {
        try ResolverWatcher(ResolverFile(namespaceName: namespace, root: machine.path))
    }

    /// Writes in place into an existing or new file, never by rename. When this returns, the event of the file's closing is queued.
    ///
    /// The file is opened by another process. A process that is being forked from this one would keep a file of this one open until it executes
    /// its program, and the event would come then.
    private func write(_ text: String, to name: String) throws {
        let writer = try Program(["sh", "-c", "printf %s \"$1\" >\"$2\"", "sh", text, machine.at(name)])
        try expectEqual(writer.wait(), 0, "\(writer.ending)")
    }

    /// True if an inotify event waits. The call that causes an event queues it, so no time passes in between.
    private func hasEvents(_ watcher: borrowing ResolverWatcher) -> Bool {
        var waiting = pollfd(fd: watcher.descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&waiting, 1, 0) == 1
    }

    /// Reads a change's events. The event of a closing in this process may come late, see ``write(_:to:)``.
    private func hasChanged(_ watcher: inout ResolverWatcher) -> Bool {
        for _ in 0..<1_000 {
            var waiting = pollfd(fd: watcher.descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, 60_000) == 1 else { return false }
            if watcher.drain() { return true }
        }
        return false
    }

    private func read(_ watcher: borrowing ResolverWatcher) -> ResolverConfiguration { watcher.read() }

    private func servers(_ watcher: borrowing ResolverWatcher) -> [String] { watcher.read().nameservers.map(\.description) }

    @Test func `a change of resolv.conf written in place is noticed`() throws {
        try write("nameserver 192.0.2.1\n", to: "etc/resolv.conf")
        var watcher = try watcher()
        expectEqual(watcher.isComplete, true)
        expectEqual(servers(watcher), ["192.0.2.1"])
        expectEqual(hasEvents(watcher), false)

        try write("nameserver 192.0.2.2\n", to: "etc/resolv.conf")
        expectEqual(hasEvents(watcher), true)
        expectEqual(hasChanged(&watcher), true)
        expectEqual(servers(watcher), ["192.0.2.2"])
        expectEqual(hasEvents(watcher), false)
        expectEqual(watcher.drain(), false)
    }

    @Test func `a change of resolv.conf is noticed when its writer closes the file`() throws {
        try write("nameserver 192.0.2.1\n", to: "etc/resolv.conf")
        var watcher = try watcher()
        let writer = open(machine.at("etc/resolv.conf"), O_WRONLY | O_TRUNC | O_CLOEXEC)
        try #require(writer >= 0)
        let text = Array("nameserver 192.0.2.2\n".utf8)
        expectEqual(Glibc.write(writer, text, text.count), text.count)
        expectEqual(hasEvents(watcher), false)
        close(writer)
        expectEqual(hasChanged(&watcher), true)
        expectEqual(servers(watcher), ["192.0.2.2"])
    }

    @Test func `each replacement of resolv.conf by rename is noticed`() throws {
        try write("nameserver 192.0.2.1\n", to: "etc/resolv.conf")
        var watcher = try watcher()
        for number in 2...5 {
            try write("nameserver 192.0.2.\(number)\n", to: "etc/resolv.conf.new")
            try machine.rename("etc/resolv.conf.new", to: "etc/resolv.conf")
            expectEqual(hasChanged(&watcher), true)
            expectEqual(servers(watcher), ["192.0.2.\(number)"])
        }
        try write("nameserver 192.0.2.9\n", to: "etc/resolv.conf")
        expectEqual(hasChanged(&watcher), true)
        expectEqual(servers(watcher), ["192.0.2.9"])
    }

    @Test func `removing resolv.conf and creating it again are noticed`() throws {
        try write("nameserver 192.0.2.1\n", to: "etc/resolv.conf")
        var watcher = try watcher()
        try machine.remove("etc/resolv.conf")
        expectEqual(hasChanged(&watcher), true)
        expectEqual(read(watcher), ResolverConfiguration())
        try write("nameserver 192.0.2.2\n", to: "etc/resolv.conf")
        expectEqual(hasChanged(&watcher), true)
        expectEqual(servers(watcher), ["192.0.2.2"])
    }

    @Test func `changes of other files in the directory are ignored`() throws {
        try write("nameserver 192.0.2.1\n", to: "etc/resolv.conf")
        var watcher = try watcher()
        try write("x", to: "etc/hosts")
        try write("y", to: "etc/hosts")
        try machine.remove("etc/hosts")
        expectEqual(watcher.drain(), false)
        try write("x", to: "run/lock")
        expectEqual(watcher.drain(), false)
    }

    @Test func `a resolv.conf that links into a missing directory is read when the directory and the file appear`() throws {
        try machine.link("etc/resolv.conf", to: "../run/systemd/resolve/stub-resolv.conf")
        var watcher = try watcher()
        expectEqual(read(watcher), ResolverConfiguration())

        try machine.makeDirectory("run/systemd")
        expectEqual(hasChanged(&watcher), true)
        try machine.makeDirectory("run/systemd/resolve")
        expectEqual(hasChanged(&watcher), true)
        try write("nameserver 127.0.0.53\n", to: "run/systemd/resolve/stub-resolv.conf")
        expectEqual(hasChanged(&watcher), true)
        expectEqual(servers(watcher), ["127.0.0.53"])

        try machine.remove("run/systemd")
        expectEqual(hasChanged(&watcher), true)
        expectEqual(read(watcher), ResolverConfiguration())
    }

    @Test func `directories created faster than they can be watched do not hide resolv.conf`() throws {
        try machine.link("etc/resolv.conf", to: "/run/a/b/resolv.conf")
        var watcher = try watcher()
        try machine.makeDirectory("run/a/b")
        try write("nameserver 192.0.2.1\n", to: "run/a/b/resolv.conf")
        expectEqual(hasChanged(&watcher), true)
        expectEqual(servers(watcher), ["192.0.2.1"])
    }

    @Test func `a link that is turned to another file is followed, and the former file is ignored`() throws {
        try write("nameserver 192.0.2.1\n", to: "run/one")
        try write("nameserver 192.0.2.2\n", to: "run/two")
        try machine.link("run/current", to: "one")
        try machine.link("etc/resolv.conf", to: "/run/current")
        var watcher = try watcher()
        expectEqual(servers(watcher), ["192.0.2.1"])

        // The link in the middle changes; the link in /etc stays.
        try machine.link("run/next", to: "two")
        try machine.rename("run/next", to: "run/current")
        expectEqual(hasChanged(&watcher), true)
        expectEqual(servers(watcher), ["192.0.2.2"])

        try write("nameserver 192.0.2.8\n", to: "run/one")
        expectEqual(watcher.drain(), false)
        try write("nameserver 192.0.2.3\n", to: "run/two")
        expectEqual(hasChanged(&watcher), true)
        expectEqual(servers(watcher), ["192.0.2.3"])
    }

    @Test func `renaming and replacing a directory on the path of a link is noticed`() throws {
        try machine.makeDirectory("run/resolve")
        try write("nameserver 192.0.2.1\n", to: "run/resolve/resolv.conf")
        try machine.link("etc/resolv.conf", to: "/run/resolve/resolv.conf")
        var watcher = try watcher()
        try machine.rename("run/resolve", to: "run/old")
        expectEqual(hasChanged(&watcher), true)
        expectEqual(read(watcher), ResolverConfiguration())
        try machine.makeDirectory("run/new")
        try write("nameserver 192.0.2.2\n", to: "run/new/resolv.conf")
        expectEqual(watcher.drain(), false)
        try machine.rename("run/new", to: "run/resolve")
        expectEqual(hasChanged(&watcher), true)
        expectEqual(servers(watcher), ["192.0.2.2"])
    }

    @Test func `a namespace's own resolv.conf is used while it exists`() throws {
        try write("nameserver 192.0.2.1\n", to: "etc/resolv.conf")
        var watcher = try watcher("blue")
        expectEqual(servers(watcher), ["192.0.2.1"])

        try machine.makeDirectory("etc/netns/blue")
        try write("nameserver 198.51.100.1\n", to: "etc/netns/blue/resolv.conf")
        expectEqual(hasChanged(&watcher), true)
        expectEqual(servers(watcher), ["198.51.100.1"])
        try write("nameserver 192.0.2.2\n", to: "etc/resolv.conf")
        expectEqual(watcher.drain(), false)

        try machine.remove("etc/netns/blue")
        expectEqual(hasChanged(&watcher), true)
        expectEqual(servers(watcher), ["192.0.2.2"])
    }

    @Test func `a resolv.conf is found if its directory is created after the start`() throws {
        try machine.remove("etc")
        var watcher = try watcher()
        expectEqual(read(watcher), ResolverConfiguration())
        try machine.makeDirectory("etc")
        expectEqual(hasChanged(&watcher), true)
        try write("", to: "etc/resolv.conf")
        expectEqual(hasChanged(&watcher), true)
        expectEqual(read(watcher), ResolverConfiguration(exists: true))
    }

    @Test func `links that form a circle, or lead to a directory or through a file, lead to no resolv.conf`() throws {
        try machine.link("etc/resolv.conf", to: "resolv.conf")
        try expectEqual(read(watcher()), ResolverConfiguration())
        try machine.remove("etc/resolv.conf")
        try machine.makeDirectory("etc/resolv.conf")
        try expectEqual(read(watcher()), ResolverConfiguration())
        try machine.remove("etc/resolv.conf")
        try write("", to: "run/file")
        try machine.link("etc/resolv.conf", to: "/run/file/resolv.conf")
        try expectEqual(read(watcher()), ResolverConfiguration())
    }

    @Test func `a FIFO in place of resolv.conf does not block the reader`() throws {
        try #require(mkfifo(machine.at("etc/resolv.conf"), 0o600) == 0)
        try expectEqual(read(watcher()), ResolverConfiguration())
    }

    @Test func `the complete lines at the beginning of a resolv.conf beyond the size limit are read`() throws {
        let filler = String(repeating: "#", count: ResolverFile.sizeLimit - "nameserver 192.0.2.1\n".utf8.count - 24) + "\n"
        try machine.write("nameserver 192.0.2.1\n" + filler + "nameserver 192.0.2.234567\n", to: "etc/resolv.conf")
        try expectEqual(servers(watcher()), ["192.0.2.1"])
    }

    @Test func `a line of 100,000 characters does not hide the name server after it`() throws {
        let long = "search " + String(repeating: "a.example ", count: 10_000) + "\n"
        try machine.write(
            "# " + String(repeating: "x", count: 100_000) + "\n" + long + "nameserver 192.0.2.1\n", to: "etc/resolv.conf")
        try expectEqual(servers(watcher()), ["192.0.2.1"])
    }

    @Test(arguments: ["..", "a/b"])
    func `a namespace name with a path separator or dots adds no file`(name: String) {
        expectEqual(ResolverFile(namespaceName: name).candidates, ["/etc/resolv.conf"])
    }

    @Test func `the machine's own resolv.conf can be watched`() throws {
        let watcher = try ResolverWatcher(ResolverFile())
        expectEqual(watcher.isComplete, true)
        let configuration = watcher.read()
        expectEqual(configuration.exists, (access("/etc/resolv.conf", F_OK) == 0))
    }
}
