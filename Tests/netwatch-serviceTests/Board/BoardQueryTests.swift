import Testing

@testable import netwatch_service

@Suite struct BoardQueryTests {
    private func query(_ text: String) -> BoardQuery { BoardQuery(QueryParameters(text)) }

    @Test func `a query selects by text, group, states, position, limit and span`() {
        let query = query("q=db+main%20x&group=Data%20center&status=down,unreachable&after=3.1.25&limit=7&span=7d&part=1")
        #expect(query.text == "db main x")
        #expect(query.group == "Data center")
        #expect(query.states == [.down, .unreachable])
        #expect(query.after == BoardPosition(rank: 3, group: 1, index: 25))
        #expect((query.limit, query.span, query.isPart, query.problem == nil) == (7, .week, true, true))
    }

    @Test func `an empty query is the first page of all targets`() {
        #expect(query("") == BoardQuery())
        #expect(query("q=&group=&status=&after=&limit=&span=") == BoardQuery())
        #expect(query("unknown=1&&&=&x") == BoardQuery())
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
        #expect(query == expected)
        #expect(query.problem?.parameter == parameter)
    }

    @Test func `hostile escapes are text`() {
        #expect(query("q=%").text == "%")
        #expect(query("q=%4").text == "%4")
        #expect(query("q=%zz%41").text == "%zzA")
        #expect(query("q=%%41").text == "%A")
        #expect(query("q=%4%41").text == "%4A")
        #expect(query("q=%ff%fe").text == "\u{fffd}\u{fffd}")
        #expect(query("q=a=b").text == "a=b")
        #expect(query("q=1&q=2").text == "1")
    }

    @Test(arguments: [
        ("limit=1&limit=2", "limit", "is set more than once"), ("a=1&q=1&q=1", "q", "is set more than once"),
        ("q=%", "q", "a percent sign needs two hexadecimal digits"), ("q=%4", "q", "a percent sign needs two hexadecimal digits"),
        ("q=a%zzb", "q", "a percent sign needs two hexadecimal digits"), ("q=%ff", "q", "is not UTF-8"),
        ("q=%c3", "q", "is not UTF-8"),
        ("%ff=1", "\u{fffd}", "is not UTF-8"),
    ])
    func `a parameter that is malformed or repeated is named`(text: String, parameter: String, detail: String) {
        #expect(QueryParameters(text).problem == QueryProblem(parameter: parameter, detail: detail))
        #expect(query(text).problem?.parameter == parameter)
    }

    @Test(arguments: ["q=%41%c3%a4", "q=%ef%bf%bd", "q=+&group=a%20b", "", "&&", "q=\u{e4}"])
    func `a parameter of any text is accepted`(text: String) { #expect(QueryParameters(text).problem == nil) }

    @Test(arguments: [
        ("at=abc", "at"), ("at=6-5", "at"), ("span=1y", "span"), ("format=xml", "format"), ("span=7d&span=7d", "span"),
    ])
    func `the page of a target names what it ignores`(text: String, parameter: String) {
        #expect(TargetQuery(QueryParameters(text)).problem?.parameter == parameter)
        #expect(TargetQuery(QueryParameters("at=1764090000-1764093600&span=7d&format=json")).problem == nil)
        #expect(TargetQuery(QueryParameters("at=&span=&format=")) == TargetQuery())
    }

    @Test func `more parameters than the limit are a problem`() {
        let parameters = (0...QueryParameters.limit).map { "p\($0)=1" }.joined(separator: "&")
        #expect(QueryParameters(parameters).problem?.detail == "there are more than 32 parameters")
    }

    @Test func `a long text is shortened, and many parameters are ignored`() {
        let query = query("q=" + String(repeating: "a", count: 100_000))
        #expect(query.text.count == BoardQuery.textLimit)
        #expect(query.problem?.parameter == "q")
        let many = (0..<100).map { "p\($0)=1" }.joined(separator: "&")
        #expect(self.query("\(many)&limit=5").limit == BoardQuery.pageSize)
    }

    @Test func `the key of a target's path is decoded`() {
        #expect(TargetPath.key(ofPath: "/target/db%2Fmain%3A5432") == "db/main:5432")
        #expect(TargetPath.key(ofPath: "/target/a+b") == "a+b")
        #expect(TargetPath.key(ofPath: "/target/%") == "%")
        for path in ["/target/", "/target", "/target/a/b", "/", "/targets/a", ""] { #expect(TargetPath.key(ofPath: path) == nil) }
    }

    @Test func `each key comes back from its address`() {
        for name in PageSamples.hostileNames where !name.isEmpty {
            let address = PageAddress("/target/", segment: name)
            #expect(TargetPath.key(ofPath: address.text) == name)
        }
    }

    @Test func `an interval of the detail page is a range of seconds`() {
        func interval(_ text: String) -> Range<Int64>? { TargetQuery(QueryParameters("at=\(text)")).interval }
        #expect(interval("1764090000-1764093600") == 1_764_090_000_000..<1_764_093_600_000)
        #expect(interval(TargetQuery.text(1_764_090_000_250..<1_764_093_600_001)) == 1_764_090_000_000..<1_764_093_601_000)
        for text in ["5-5", "6-5", "-1-5", "5", "", "5-6-7", "a-b", "0-9223372036854775807", "9223372036854775807-1"] {
            #expect(interval(text) == nil, "\(text)")
        }
    }
}
