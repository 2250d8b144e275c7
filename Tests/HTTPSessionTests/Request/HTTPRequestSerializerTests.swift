import Expectations
import Foundation
import HTTPSession
import HTTPSessionCompatibility
import HTTPTypes
import Synchronization
import EventLoop
import Testing

@Suite struct HTTPRequestSerializerTests {
    let form = "application/x-www-form-urlencoded"

    @Test func `POST encodes the parameters as a form in its body`() throws {
        let request = try SerializedRequest(.post, parameters: ["key": "value"])
        expectEqual(request.field(.contentType), form)
        expectEqual(request.body, "key=value")
        expectEqual(request.url, SerializedRequest.url)
    }

    @Test func `POST without parameters has an empty form body`() throws {
        let request = try SerializedRequest(.post)
        expectEqual(request.field(.contentType), form)
        expectEqual(request.body, "")
    }

    @Test(arguments: [.get, .head, .delete] as [HTTPRequest.Method])
    func `GET, HEAD and DELETE encode the parameters in the query`(method: HTTPRequest.Method) throws {
        let request = try SerializedRequest(method, parameters: ["key": "value"])
        expectEqual(request.url, "https://example.com/things?key=value")
        expectNil(request.body)
        expectNil(request.field(.contentType))
    }

    @Test func `a method in lower case encodes parameters like the method in upper case`() throws {
        let request = try SerializedRequest(try #require(HTTPRequest.Method("get")), parameters: ["key": "value"])
        expectEqual(request.url, "https://example.com/things?key=value")
    }

    @Test func `default fields are sent in the serializer's order, all lines of a name, and never beside the request's own`()
        throws
    {
        let (first, second) = (try #require(HTTPField.Name("X-First")), try #require(HTTPField.Name("X-Second")))
        var fields: HTTPFields = [.userAgent: "probe/1", first: "a", .acceptLanguage: "en", second: "b"]
        fields.append(HTTPField(name: first, value: "c"))
        let serializer = HTTPRequestSerializer(headerFields: fields)
        let own = TransferRequest(url: try #require(URL(string: SerializedRequest.url)), headerFields: [second: "own"])
        // The order of a set differs from one set to the next.
        for _ in 0..<20 {
            let sent = serializer.applyingDefaults(to: own).headerFields
            expectEqual(
                sent.map { "\($0.name): \($0.value)" },
                ["X-Second: own", "User-Agent: probe/1", "X-First: a", "Accept-Language: en", "X-First: c"])
        }
    }

    @Test func `the methods that encode parameters in the query can be chosen`() throws {
        var serializer = HTTPRequestSerializer(headerFields: [:])
        serializer.httpMethodsEncodingParametersInURI = [.post]
        try expectEqual(SerializedRequest(.post, parameters: ["a": 1], by: serializer).url, "https://example.com/things?a=1")
        try expectEqual(SerializedRequest(.delete, parameters: ["a": 1], by: serializer).body, "a=1")
    }

    @Test func `empty parameters leave the URL without a question mark`() throws {
        try expectEqual(SerializedRequest(parameters: [:]).url, SerializedRequest.url)
        try expectEqual(SerializedRequest(parameters: ["a": []]).url, SerializedRequest.url)
    }

    @Test func `reserved characters in a query are escaped`() throws {
        let request = try SerializedRequest(parameters: ["key": " :#[]@!$&'()*+,;=/?"])
        expectEqual(request.url, "https://example.com/things?key=%20%3A%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D/?")
    }

    @Test func `percent escapes in parameter values are escaped again`() throws {
        let request = try SerializedRequest(parameters: ["key": "%20%3A%23"])
        expectEqual(request.url, "https://example.com/things?key=%2520%253A%2523")
    }

    @Test(
        arguments: [
            ("https://e.com", "https://e.com?a=1"), ("https://e.com/?b=2", "https://e.com/?b=2&a=1"),
            ("https://e.com/?", "https://e.com/?a=1"), ("https://e.com/?b&", "https://e.com/?b&a=1"),
            ("https://e.com/p#part", "https://e.com/p?a=1#part"), ("https://e.com/?b=%5B#f?x", "https://e.com/?b=%5B&a=1#f?x"),
        ])
    func `a query is appended to the URL's query, before the fragment`(url: String, expected: String) throws {
        try expectEqual(SerializedRequest(.get, url, parameters: ["a": 1]).url, expected)
    }

    @Test func `a custom query serialization is used for queries and forms`() throws {
        var serializer = HTTPRequestSerializer(headerFields: [:])
        serializer.queryStringSerialization = .custom { request, _ in "method=\(request.method)" }
        try expectEqual(
            SerializedRequest(.get, parameters: ["a": 1], by: serializer).url, "https://example.com/things?method=GET")
        try expectEqual(SerializedRequest(.put, parameters: ["a": 1], by: serializer).body, "method=PUT")
    }

    @Test func `a custom query serialization that throws fails the request with its error`() {
        var serializer = HTTPRequestSerializer(headerFields: [:])
        serializer.queryStringSerialization = .custom { _, _ in throw Refusal() }
        let error = HTTPSessionError.thrown { try SerializedRequest(parameters: ["a": 1], by: serializer) }
        expectEqual(error?.code, .cannotEncodeRequest)
        #expect(error?.underlying is Refusal)
        expectEqual(error?.context.url, SerializedRequest.url)
    }

    @Test(arguments: ["a=b c", "a=\r\nX: y", "a=ü", "a=1#2", "a=<b>", "a=%zz"])
    func `a custom query serialization that returns an invalid query is an error`(query: String) {
        var serializer = HTTPRequestSerializer(headerFields: [:])
        serializer.queryStringSerialization = .custom { _, _ in query }
        let error = HTTPSessionError.thrown { try SerializedRequest(parameters: ["a": 1], by: serializer) }
        expectEqual(error?.code, .cannotEncodeRequest)
    }

    @Test func `an existing body is kept, and parameters beside it are an error`() throws {
        let request = try SerializedRequest(.put, body: .data(Data("kept".utf8)))
        expectEqual(request.body, "kept")
        expectNil(request.field(.contentType))
        let error = HTTPSessionError.thrown { try SerializedRequest(.put, body: .data(Data()), parameters: ["a": 1]) }
        expectEqual(error?.code, .invalidRequest)
    }

    // MARK: Header fields

    @Test func `a header field that was set is found regardless of case`() throws {
        var serializer = HTTPRequestSerializer(headerFields: [:])
        try serializer.setValue("value", forHTTPHeaderField: "X-Field")
        expectEqual(serializer.value(forHTTPHeaderField: "x-field"), "value")
        try expectEqual(SerializedRequest(by: serializer).request.headerFields.count, 1)
    }

    @Test func `a header field that was not set is nil`() {
        expectNil(HTTPRequestSerializer(headerFields: [:]).value(forHTTPHeaderField: "X-Field"))
        expectNil(HTTPRequestSerializer(headerFields: [:]).value(forHTTPHeaderField: "no name"))
    }

    @Test func `setting a header field to nil removes it`() throws {
        var serializer = HTTPRequestSerializer(headerFields: [:])
        try serializer.setValue("value", forHTTPHeaderField: "X-Field")
        try serializer.setValue(nil, forHTTPHeaderField: "X-Field")
        expectNil(serializer.value(forHTTPHeaderField: "X-Field"))
        expectEmpty(serializer.headerFields)
    }

    @Test func `a header field of the request is not replaced by the serializer's`() throws {
        let serializer = HTTPRequestSerializer(headerFields: [.accept: "a/b", .contentType: "c/d", .from: "e"])
        let request = try SerializedRequest(.post, fields: [.accept: "x/y"], by: serializer)
        expectEqual(request.field(.accept), "x/y")
        expectEqual(request.field(.contentType), "c/d")
        expectEqual(request.field(.from), "e")
    }

    @Test func `header fields set by many threads at once are all kept`() throws {
        let serializer = Locked(HTTPRequestSerializer(headerFields: [:]))
        let failures = Atomic(0)
        DispatchQueue.concurrentPerform(iterations: 1000) { number in
            let isSet: Void? = serializer.withLock { try? $0.setValue("value", forHTTPHeaderField: "field-\(number)") }
            if isSet == nil { failures.add(1, ordering: .relaxed) }
        }
        expectEqual(failures.load(ordering: .relaxed), 0)
        expectEqual(serializer.withLock { $0.headerFields.count }, 1000)
    }

    @Test func `a copy of a request serializer is independent of the original`() throws {
        let original = HTTPRequestSerializer(headerFields: [.accept: "a/b"])
        var copy = original
        try copy.setValue("c/d", forHTTPHeaderField: "Accept")
        expectEqual(original.value(forHTTPHeaderField: "Accept"), "a/b")
    }

    @Test func `options that the request does not set come from the serializer`() throws {
        var serializer = HTTPRequestSerializer(headerFields: [:])
        serializer.options.requestTimeout = .seconds(5)
        serializer.options.allowsCellularAccess = false
        var request = TransferRequest(url: try #require(URL(string: SerializedRequest.url)))
        request.options.requestTimeout = .seconds(1)
        let serialized = try serializer.serialize(request)
        expectEqual(serialized.options.requestTimeout, .seconds(1))
        expectEqual(serialized.options.allowsCellularAccess, false)
        expectNil(serialized.options.handlesCookies)
    }

    @Test func `every option of the serializer applies to a request without options`() throws {
        var serializer = HTTPRequestSerializer(headerFields: [:])
        serializer.options.requestTimeout = .seconds(1)
        serializer.options.resourceTimeout = .seconds(2)
        serializer.options.connectTimeout = .seconds(3)
        serializer.options.priority = .high
        serializer.options.handlesCookies = false
        serializer.options.allowsCellularAccess = false
        serializer.options.allowsExpensiveAccess = false
        serializer.options.allowsConstrainedAccess = false
        serializer.options.waitsForConnectivity = false
        serializer.options.connectivityTimeout = .seconds(4)
        serializer.options.retryPolicy = .never
        serializer.options.maximumResponseSize = 4
        serializer.options.sendsCredentialsPreemptively = true
        let (set, unset) = (Mirror(reflecting: serializer.options), Mirror(reflecting: TransferRequest.Options()))
        for (one, other) in zip(set.children, unset.children) {
            #expect("\(one.value)" != "\(other.value)", "\(one.label ?? "") is not set above")
        }
        let url = try #require(URL(string: "http://example.com/"))
        try expectEqual(serializer.serialize(TransferRequest(url: url), parameters: nil).options, serializer.options)
    }
}
