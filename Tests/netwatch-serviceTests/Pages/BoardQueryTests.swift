import Expectations
import Testing

@testable import netwatch_service

@Suite struct BoardQueryTests {
    private func query(_ text: String) -> BoardQuery { BoardQuery(QueryParameters(text)) }

    @Test func `a query selects by text, group, states, position, limit and span`() {
        let query = query("q=db+main%20x&group=Data%20center&status=down,unreachable&after=3.1.25&limit=7&span=7d&part=1")
        expectEqual(query.text, "db main x")
        expectEqual(query.group, "Data center")
        expectEqual(query.states, [.down, .unreachable])
        expectEqual(query.after, BoardPosition(rank: 3, group: 1, index: 25))
        expectEqual(query.limit, 7)
        expectEqual(query.span, .week)
        expectEqual(query.isPart, true)
        #expect((query.problem == nil) == true)
    }

    @Test func `an empty query is the first page of all targets`() {
        expectEqual(query(""), BoardQuery())
        expectEqual(query("q=&group=&status=&after=&limit=&span="), BoardQuery())
        expectEqual(query("unknown=1&&&=&x"), BoardQuery())
    }

    @Test(arguments: [
        ("limit=0", "limit"), ("limit=1001", "limit"), ("limit=-1", "limit"), ("limit=9223372036854775808", "limit"),
        ("limit=1e3", "limit"),
        ("status=UP", "status"), ("status=not_recorded", "status"), ("status=%00", "status"), ("after=3.1", "after"),
        ("after=-1.0.0", "after"), ("after=99999999999999999999.0.0", "after"), ("after=+1.0.0", "after"), ("span=1y", "span"),
    ])
    func `a value that is not valid is ignored and named`(_ text: String, _ parameter: String) {
        var expected = BoardQuery()
        let query = query(text)
        expected.problem = query.problem
        expectEqual(query, expected)
        expectEqual(query.problem?.parameter, parameter)
    }

    @Test func `hostile escapes are text`() {
        expectEqual(query("q=%").text, "%")
        expectEqual(query("q=%4").text, "%4")
        expectEqual(query("q=%zz%41").text, "%zzA")
        expectEqual(query("q=%%41").text, "%A")
        expectEqual(query("q=%4%41").text, "%4A")
        expectEqual(query("q=%ff%fe").text, "\u{fffd}\u{fffd}")
        expectEqual(query("q=a=b").text, "a=b")
        expectEqual(query("q=1&q=2").text, "1")
    }

    @Test(arguments: [
        ("limit=1&limit=2", "limit", "is set more than once"), ("a=1&q=1&q=1", "q", "is set more than once"),
        ("q=%", "q", "a percent sign needs two hexadecimal digits"), ("q=%4", "q", "a percent sign needs two hexadecimal digits"),
        ("q=a%zzb", "q", "a percent sign needs two hexadecimal digits"), ("q=%ff", "q", "is not UTF-8"),
        ("q=%c3", "q", "is not UTF-8"),
        ("%ff=1", "\u{fffd}", "is not UTF-8"),
    ])
    func `a parameter that is malformed or repeated is named`(text: String, parameter: String, detail: String) {
        expectEqual(QueryParameters(text).problem, QueryProblem(parameter: parameter, detail: detail))
        expectEqual(query(text).problem?.parameter, parameter)
    }

    @Test(arguments: ["q=%41%c3%a4", "q=%ef%bf%bd", "q=+&group=a%20b", "", "&&", "q=\u{e4}"])
    func `a parameter of any text is accepted`(text: String) { expectNil(QueryParameters(text).problem) }

    @Test(arguments: [
        ("at=abc", "at"), ("at=6-5", "at"), ("span=1y", "span"), ("format=xml", "format"), ("span=7d&span=7d", "span"),
    ])
    func `the page of a target names what it ignores`(text: String, parameter: String) {
        expectEqual(TargetQuery(QueryParameters(text)).problem?.parameter, parameter)
        expectNil(TargetQuery(QueryParameters("at=1764090000-1764093600&span=7d&format=json")).problem)
        expectEqual(TargetQuery(QueryParameters("at=&span=&format=")), TargetQuery())
    }

    @Test func `more parameters than the limit are a problem`() {
        let parameters = (0...QueryParameters.limit).map { "p\($0)=1" }.joined(separator: "&")
        expectEqual(QueryParameters(parameters).problem?.detail, "there are more than 32 parameters")
    }

    @Test func `a long text is shortened, and many parameters are ignored`() {
        let query = query("q=" + String(repeating: "a", count: 100_000))
        expectEqual(query.text.count, BoardQuery.textLimit)
        expectEqual(query.problem?.parameter, "q")
        let many = (0..<100).map { "p\($0)=1" }.joined(separator: "&")
        expectEqual(self.query("\(many)&limit=5").limit, BoardQuery.pageSize)
    }

    @Test func `the key of a target's path is decoded`() {
        expectEqual(TargetPath.key(ofPath: "/target/db%2Fmain%3A5432"), "db/main:5432")
        expectEqual(TargetPath.key(ofPath: "/target/a+b"), "a+b")
        expectEqual(TargetPath.key(ofPath: "/target/%"), "%")
        for path in ["/target/", "/target", "/target/a/b", "/", "/targets/a", ""] { expectNil(TargetPath.key(ofPath: path)) }
    }

    @Test func `each key comes back from its address`() {
        for name in PageSamples.hostileNames where !name.isEmpty {
            let address = PageAddress("/target/", segment: name)
            expectEqual(TargetPath.key(ofPath: address.text), name)
        }
    }

    @Test func `an interval of the detail page is a range of seconds`() {
        func interval(_ text: String) -> Range<Int64>? { TargetQuery(QueryParameters("at=\(text)")).interval }
        expectEqual(interval("1764090000-1764093600"), 1_764_090_000_000..<1_764_093_600_000)
        expectEqual(interval(TargetQuery.text(1_764_090_000_250..<1_764_093_600_001)), 1_764_090_000_000..<1_764_093_601_000)
        for text in ["5-5", "6-5", "-1-5", "5", "", "5-6-7", "a-b", "0-9223372036854775807", "9223372036854775807-1"] {
            expectNil(interval(text), "\(text)")
        }
    }
}
