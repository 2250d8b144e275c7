import Foundation
import HTTPSession
import HTTPTypes
import Testing

@Suite struct CompoundResponseSerializerTests {
    enum Content: Equatable {
        case image(Data)
        case json(JSONValue?)
    }

    let images = HTTPResponseSerializer(validation: ResponseValidation(acceptableContentTypes: ["image/*"]))

    func compound() -> CompoundResponseSerializer<Content> {
        CompoundResponseSerializer([images.map { Content.image($0) }, JSONResponseSerializer().map { Content.json($0) }])
    }

    @Test func `JSON goes past the serializer of images to that of JSON`() throws {
        #expect(try compound().serialize(response("{}", type: "application/json")) == .json([:]))
        #expect(try compound().serialize(response("png", type: "image/png")) == .image(Data("png".utf8)))
    }

    @Test func `where none succeeds, the last one's error stands below`() {
        let error = HTTPSessionError.thrown { try compound().serialize(response("a", type: "text/html")) }
        #expect(error?.code == .cannotDecodeContent)
        #expect(error?.reason == "none of 2 serializers decodes the response")
        #expect((error?.underlying as? HTTPSessionError)?.reason == "unacceptable content type: text/html")
        #expect(error?.context.responseBody == Data("a".utf8))
    }

    @Test func `an unacceptable status is said once, not by each of them`() {
        let error = HTTPSessionError.thrown {
            try compound().serialize(response("{}", type: "application/json", status: .notFound))
        }
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.underlying == nil)
    }

    @Test func `without serializers there is no value`() {
        let error = HTTPSessionError.thrown { try CompoundResponseSerializer<Int>([]).serialize(response("")) }
        #expect(error?.code == .cannotDecodeContent)
    }

    @Test func `a copy is independent of what it was copied from`() {
        let original = compound()
        var copy = original
        copy.serializers.removeLast()
        #expect(original.serializers.count == 2)
    }
}
