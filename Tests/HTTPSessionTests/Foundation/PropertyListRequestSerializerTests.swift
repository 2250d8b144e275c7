import Expectations
import Foundation
import HTTPSession
import HTTPSessionFoundation
import HTTPTypes
import Testing

@Suite struct PropertyListRequestSerializerTests {
    let serializer = PropertyListRequestSerializer(base: HTTPRequestSerializer(headerFields: [:]))

    @Test(arguments: [.xml, .binary] as [PropertyListSerialization.PropertyListFormat])
    func `parameters are encoded as a property list`(format: PropertyListSerialization.PropertyListFormat) throws {
        var serializer = serializer
        serializer.format = format
        let parameters: Parameters = [
            "a": ["b": [1, true, 1.5]], "c": .data(Data([1])), "d": .date(Date(timeIntervalSince1970: 0)),
        ]
        let request = try SerializedRequest(.post, parameters: parameters, by: serializer)
        expectEqual(request.field(.contentType), "application/x-plist")
        guard case .data(let body) = request.request.body else {
            Issue.record("no body")
            return
        }
        let list = try #require(try PropertyListSerialization.propertyList(from: body, format: nil) as? NSDictionary)
        expectEqual(list["c"] as? Data, Data([1]))
        expectEqual(list["d"] as? Date, Date(timeIntervalSince1970: 0))
        expectEqual((list["a"] as? [String: [Any]])?["b"]?.count, 3)
    }

    @Test(arguments: [["a": nil], .set(["a"]), [.set([])]] as [Parameters])
    func `parameters that no property list can represent are an error`(parameters: Parameters) {
        let error = HTTPSessionError.thrown { try SerializedRequest(.post, parameters: parameters, by: serializer) }
        expectEqual(error?.code, .cannotEncodeRequest)
        expectEqual(error?.reason, "the parameters are not a valid property list")
    }

    @Test func `without parameters there is no body and no content type, and GET has a query`() throws {
        try expectNil(SerializedRequest(.post, by: serializer).field(.contentType))
        try expectEqual(SerializedRequest(.get, parameters: ["a": 1], by: serializer).url, "https://example.com/things?a=1")
    }

    @Test func `the OpenStep format is refused, because it cannot be written`() {
        let serializer = PropertyListRequestSerializer(base: HTTPRequestSerializer(headerFields: [:]), format: .openStep)
        expectEqual(
            HTTPSessionError.thrown { try SerializedRequest(.post, parameters: [:], by: serializer) }?.code,
            .cannotEncodeRequest)
    }
}
