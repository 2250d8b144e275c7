import COpenSSL
import Certificates
import FoundationEssentials
import HTTPSessionTestKit

extension ProxyServer.Credentials {
    /// The challenge for a client without credentials.
    var challenge: String {
        switch scheme {
        case .basic: "Basic realm=\"proxy\""
        case .digest: "Digest realm=\"proxy\", qop=\"auth\", algorithm=MD5, nonce=\"\(Self.nonce)\""
        }
    }

    /// Whether a field's value has these credentials.
    func areSaid(in field: String, method: String) -> Bool {
        switch scheme {
        case .basic: return field == "Basic \(Data("\(user):\(password)".utf8).base64EncodedString())"
        case .digest:
            guard field.hasPrefix("Digest ") else { return false }
            let said = Self.parameters(of: field.dropFirst(7))
            func value(_ name: String) -> String { said[name] ?? "" }
            // RFC 7616 section 3.4.1.
            let secret = Self.hash("\(user):proxy:\(password)")
            let asked = Self.hash("\(method):\(value("uri"))")
            let fresh = "\(Self.nonce):\(value("nc")):\(value("cnonce")):auth"
            return value("username") == user && value("response") == Self.hash("\(secret):\(fresh):\(asked)")
        }
    }

    private static let nonce = "n0nce"

    /// The parameters of `name=value, name="value"`; no client here sends a comma or a quotation mark in a value.
    private static func parameters(of text: Substring) -> [String: String] {
        var parameters: [String: String] = [:]
        for part in text.split(separator: ",") {
            let sides = part.split(separator: "=", maxSplits: 1)
            guard sides.count == 2 else { continue }
            parameters[sides[0].filter { $0 != " " }] = sides[1].filter { $0 != "\"" && $0 != " " }
        }
        return parameters
    }

    private static func hash(_ text: String) -> String {
        var digest = [UInt8](repeating: 0, count: 16)
        OpenSSL.prepare()
        EVP_Digest(Array(text.utf8), text.utf8.count, &digest, nil, EVP_md5(), nil)
        let digits = Array("0123456789abcdef")
        return String(digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }
}
