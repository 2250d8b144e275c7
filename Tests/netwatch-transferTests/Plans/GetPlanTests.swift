import Console
import Expectations
import Foundation
import Testing

@testable import netwatch
@testable import netwatch_transfer

@Suite struct FileNameTests {
    @Test(arguments: [
        ("http://h/a/big.iso", "big.iso"), ("http://h/a%20b.txt?x=/y#z", "a b.txt"), ("http://h", "index.html"),
        ("http://h/", "index.html"), ("http://h/dir/", "index.html"), ("http://h/a%2Fb", "a_b"),
        ("http://h/%2e%2e", "index.html"),
        ("http://h/..%2f..%2fetc%2fpasswd", "_._.._etc_passwd"), ("http://h/.bashrc", "_bashrc"), ("http://h/a%00b%0ac", "a_b_c"),
        ("http://h/%ff%fe", "%ff%fe"), ("http://h/n%C3%A4me", "näme"), ("http://h/%E6%97%A5", "日"),
        ("http://h/a%1b%5B2Jb", "a_[2Jb"),
    ])
    func `the file name is the last segment of the URL's path`(_ address: String, _ name: String) throws {
        expectEqual(FileName.of(try #require(URL(string: address))), name)
    }

    @Test(arguments: [
        ("-rf", "_rf"), ("--help", "_-help"), ("%2Drf", "_rf"), ("~root", "_root"), ("%20-rf%20", "_-rf_"),
        ("x.netwatch-part", "x_netwatch-part"), ("x.NetWatch-Part.json", "x_netwatch-part.json"),
        (".netwatch-part", "_netwatch-part"), ("x%2Enetwatch-part", "x_netwatch-part"),
        ("NUL", "_NUL"), ("com1.txt", "_com1.txt"), ("console", "console"), ("a%5Cb", "a_b"),
        ("a%C2%9Bb", "a_b"), ("a%E2%80%AEgpj.exe", "a_gpj.exe"), ("a%E2%80%A8b", "a_b"),
        // A dot with a combining accent is one character.
        (".%CC%81hidden", "_\u{301}hidden"), ("-%CC%81rf", "_\u{301}rf"),
    ])
    func `a file name from a URL is no option, no partial file, not hidden and without controls`(
        _ segment: String, _ name: String
    )
        throws
    {
        expectEqual(FileName.of(try #require(URL(string: "http://h/a/" + segment))), name)
    }

    @Test(arguments: ["", ".txt"]) func `a file name of one character with many accents keeps a stem`(_ end: String) {
        let name = FileName.safe("a" + String(repeating: "\u{301}", count: 300) + end)
        #expect(name.unicodeScalars.first == "a" && name.hasSuffix(end))
        #expect(name.utf8.count <= FileName.longest)
    }

    @Test func `a long file name keeps its extension`() throws {
        let url = try #require(URL(string: "http://h/" + String(repeating: "%C3%A4", count: 300) + ".tar.gz"))
        let name = FileName.of(url)
        #expect(name.utf8.count <= 200 && name.utf8.count > 190 && name.hasSuffix(".gz"))
    }
}

@Suite struct GetPlanTests {
    @Test func `files are named by URL, --output and --directory`() throws {
        try expectEqual(GetPlan(urls: ["http://h/a", "http://h/b?c"]).items.map(\.file), ["a", "b"])
        try expectEqual(GetPlan(urls: ["http://h/a"], directory: "x/").items.map(\.file), ["x/a"])
        try expectEqual(GetPlan(urls: ["http://h/a"], output: "y/z").items.map(\.file), ["y/z"])
        try expectEqual(GetPlan(urls: ["https://user:secret@h/a?b"]).items.map(\.address), ["https://h/a?b"])
    }

    @Test(arguments: [
        ("get", "get: the URL is missing; see 'netwatch get --help'"),
        ("get ftp://h/a", "URL 'ftp://h/a': scheme: 'ftp' is not supported; use http or https"),
        ("get h/a", "URL 'h/a': the scheme is missing; write http:// or https:// before it"),
        ("get bob:secret@h/a", "URL 'bob:***@h/a': the scheme is missing; write http:// or https:// before it"),
        ("get ftp://bob:secret@h/a", "URL 'ftp://h/a': scheme: 'ftp' is not supported; use http or https"),
        ("get bob:secret@h/x://y", "URL 'bob:***@h/x://y': scheme: 'bob:***@h/x' is not supported; use http or https"),
        ("get http://bob:sec/ret@h/a", "URL 'http://bob:***@h/a': the URL cannot be parsed"),
        ("get http://", "URL 'http://': the URL has no host, or an invalid one"),
        ("get http://h/a http://i/a", "get: http://h/a and http://i/a would both be 'a'; download them one by one with -o"),
        ("get -o x http://h/a http://i/b", "-o: it names one file, but there are 2 URLs; use -d"),
        ("get -o x -d y http://h/a", "-o -d: they exclude each other"),
        ("get -o - http://h/a", "-o '-': write the name of a file; nothing can be continued on standard output"),
        ("get --sha256 12 http://h/a", "--sha256 '12': write 64 hexadecimal digits, as sha256sum prints them"),
        ("get --sha256 12 http://h/a http://h/b", "--sha256: it is the digest of one file, but there are 2 URLs"),
        (
            "get --limit-rate 1.5M http://h/a",
            "--limit-rate 1.5M: write a whole number of bytes a second, as in 500000, 500k or 2M"
        ),
        ("get --parallel 0 http://h/a", "--parallel 0: must be from 1 to 64"),
        ("get --timeout 5 http://h/a", "--timeout 5: the unit is missing; \(TimeSpan.form)"),
        ("get -4 -6 http://h/a", "-4 -6: they exclude each other; leave both out for both families"),
        ("get --elsewhere", "get: unknown option '--elsewhere'; see 'netwatch get --help'"),
    ])
    func `invalid arguments of get are usage errors`(_ line: String, _ message: String) {
        #expect(throws: Failure(64, message)) { try TransferCommands.run(line.split(separator: " ").map(String.init)) }
    }
}
