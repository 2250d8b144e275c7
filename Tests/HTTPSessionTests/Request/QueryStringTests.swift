import Expectations
import Foundation
import HTTPSession
import Testing

@Suite struct QueryStringTests {
    @Test func `query items are joined in the order of their keys`() throws {
        let parameters: Parameters = ["key1": "value&", "key": "value"]
        try expectEqual(parameters.queryString(), "key=value&key1=value%26")
    }

    @Test func `every reserved character except slash and question mark is percent-escaped`() {
        expectEqual(
            QueryPair.escape(":#[]@!$&'()*+,;=?/ ".utf8), "%3A%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D?/%20")
        expectEqual(QueryPair.escape("AZaz09-._~".utf8), "AZaz09-._~")
        expectEqual(QueryPair.escape("%20".utf8), "%2520")
        expectEqual(QueryPair.escape("a\r\n\0b".utf8), "a%0D%0A%00b")
    }

    @Test(arguments: 40...60) func `an emoji with a skin tone is escaped completely at every position`(place: Int) {
        let text = String(repeating: "a", count: place) + "👴🏿👷🏻\u{200D}♀️" + String(repeating: "b", count: 50)
        let escaped = QueryPair.escape(text.utf8)
        #expect(escaped.hasPrefix(String(repeating: "a", count: place) + "%F0%9F%91%B4%F0%9F%8F%BF%F0%9F%91%B7"))
        expectEqual(escaped.removingPercentEncoding, text)
    }

    @Test(
        arguments: [
            (["user": ["name": "Ada", "id": 7]], "user[id]=7&user[name]=Ada"),
            (["ids": [3, 1, 2]], "ids[]=3&ids[]=1&ids[]=2"),
            (["grid": [[1, 2], [3]]], "grid[][]=1&grid[][]=2&grid[][]=3"),
            (["people": [["name": "Ada"], ["name": "Bo"]]], "people[][name]=Ada&people[][name]=Bo"),
            (["tags": .set(["b", "a", "c"])], "tags=a&tags=b&tags=c"),
            (["a": nil, "b": ""], "a&b="),
            (["yes": true, "no": false], "no=0&yes=1"),
            (["whole": 2.0, "half": 1.5, "large": .unsigned(.max)], "half=1.5&large=18446744073709551615&whole=2"),
            (["none": [], "nothing": [:], "some": 1], "some=1"),
            (["bytes": .data(Data([0, 0xFF]))], "bytes=%00%FF"),
            (["when": .date(Date(timeIntervalSince1970: 0))], "when=1970-01-01T00%3A00%3A00Z"),
            ([:], ""),
        ] as [(Parameters, String)])
    func `nested parameters are flattened into a query`(parameters: Parameters, expected: String) throws {
        let readable = try parameters.queryString().replacing("%5B", with: "[").replacing("%5D", with: "]")
        expectEqual(readable, expected)
    }

    @Test(arguments: [["a", "b"], "text", 1, nil, .set(["a"])] as [Parameters])
    func `parameters without names cannot become a query`(parameters: Parameters) {
        let error = HTTPSessionError.thrown { try parameters.queryString() }
        expectEqual(error?.code, .cannotEncodeRequest)
    }

    @Test func `query parameters nested deeper than the limit are refused before they are traversed`() throws {
        var parameters: Parameters = "leaf"
        for _ in 1..<Parameters.maximumDepth { parameters = [parameters] }
        #expect(try Parameters.dictionary(["a": parameters]).queryString().hasSuffix("=leaf"))
        for _ in 0..<5_000 { parameters = ["deeper": parameters] }
        let error = HTTPSessionError.thrown { try parameters.queryString() }
        expectEqual(error?.code, .cannotEncodeRequest)
        expectEqual(error?.reason, "the parameters are nested more than 512 deep")
    }
}
