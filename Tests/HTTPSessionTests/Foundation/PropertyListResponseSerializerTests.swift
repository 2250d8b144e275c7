import Expectations
import Foundation
import HTTPSession
import HTTPSessionFoundation
import HTTPTypes
import Pacing
import Testing

@Suite struct PropertyListResponseSerializerTests {
    let serializer = PropertyListResponseSerializer()
    let plist = "application/x-plist"

    func list(_ object: Any, _ format: PropertyListSerialization.PropertyListFormat) throws -> Data {
        try PropertyListSerialization.data(fromPropertyList: object, format: format, options: 0)
    }

    /// A binary property list of arrays. `references` returns the references of each array, one byte each.
    func binary(_ count: Int, references: (Int) -> [UInt8]) -> Data {
        var bytes = Array("bplist00".utf8)
        var offsets: [UInt8] = []
        for object in 0..<count {
            offsets += [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)]
            let children = references(object)
            bytes += [0xA0 | UInt8(children.count)] + children
        }
        let table = bytes.count
        bytes += offsets + [0, 0, 0, 0, 0, 0, 2, 1]
        for number in [count, 0, table] { bytes += withUnsafeBytes(of: UInt64(number).bigEndian, Array.init) }
        return Data(bytes)
    }

    @Test(arguments: [.xml, .binary] as [PropertyListSerialization.PropertyListFormat])
    func `a property list is decoded to its objects`(format: PropertyListSerialization.PropertyListFormat) throws {
        let body = try list(["a": [1, "b"], "c": ["d": true], "long": Array(0..<20)] as [String: Any], format)
        let object = try serializer.serialize(response(body, type: plist)) as? [String: Any]
        expectEqual((object?["a"] as? [Any])?.count, 2)
        expectEqual((object?["c"] as? [String: Bool]), ["d": true])
        expectEqual((object?["long"] as? [Int])?.last, 19)
    }

    @Test func `a property list with another content type fails as unacceptableContentType`() {
        let error = HTTPSessionError.thrown { try serializer.serialize(response("<plist/>", type: "application/xml")) }
        expectEqual(error?.code, .unacceptableContentType)
    }

    @Test func `a 204 without a body decodes to no property list, without an error`() throws {
        try expectNil(serializer.serialize(response("", type: plist, status: .noContent)))
        try expectNil(serializer.serialize(response("", status: .noContent)))
    }

    @Test(
        arguments: [
            "invalid", "{\"a\":1}", "<plist><dict></plist>", "bplist", "bplist00", "<", "(1,2)", " ",
            "<!DOCTYPE plist [<!ENTITY x SYSTEM \"file:///etc/hostname\">]><plist version=\"1.0\"><string>&x;</string></plist>",
        ])
    func `a body that is not a property list is an error`(text: String) {
        let error = HTTPSessionError.thrown { try serializer.serialize(response(text, type: plist)) }
        expectEqual(error?.code, .cannotDecodeContent)
    }

    @Test func `a binary property list that contains itself, expands without limit or is too deep is an error`() {
        let itself = binary(1) { _ in [0] }
        let unfolding = binary(40) { $0 == 39 ? [] : [UInt8($0 + 1), UInt8($0 + 1)] }
        for (body, reason) in [(itself, "contains itself"), (unfolding, "more than 1000000 objects")] {
            let error = HTTPSessionError.thrown { try serializer.serialize(response(body, type: plist)) }
            #expect(error?.reason.contains(reason) == true)
            let decoding = DecodableResponseSerializer<[[Int]]>(decoder: PropertyListDecoder())
            expectEqual(HTTPSessionError.thrown { try decoding.serialize(response(body)) }?.code, .cannotDecodeContent)
        }
        let xml = "<plist version=\"1.0\">" + String(repeating: "<array>", count: 100_000) + "</plist>"
        expectEqual(HTTPSessionError.thrown { try serializer.serialize(response(xml, type: plist)) }?.code, .cannotDecodeContent)
    }

    @Test func `a binary property list with a set, which crashes Foundation, is an error`() {
        var body = binary(2) { $0 == 0 ? [1] : [] }
        body[10] = 0xC0
        let error = HTTPSessionError.thrown { try serializer.serialize(response(body, type: plist)) }
        expectEqual(error?.reason, "the property list has a set or a reference, which are not supported")
    }

    @Test func `a property list with random bytes changed is decoded or an error`() throws {
        let source: [String: Any] = ["a": [1, "x"], "b": ["c": true, "d": Data([1])], "f": 1.5, "g": "ü€", "l": Array(0..<20)]
        let lists = [try list(source, .binary), try list(source, .xml)]
        for seed in (0..<4_000).map({ _ in UInt64.random(in: .min ... .max) }) {
            var draws = SplitMix64(seed: seed)
            var body = lists[Int.random(in: 0...1, using: &draws)]
            for _ in 0..<Int.random(in: 1...4, using: &draws) {
                body[Int.random(in: 0..<body.count, using: &draws)] = .random(in: 0...255, using: &draws)
            }
            let error = HTTPSessionError.thrown { try serializer.serialize(response(body, type: plist)) }
            #expect(error == nil || error?.code == .cannotDecodeContent, "seed \(seed)")
        }
    }

    @Test func `a copy of a property list serializer is independent of the original`() {
        var copy = serializer
        copy.readOptions = .mutableContainers
        #expect(serializer.readOptions.isEmpty)
    }
}
