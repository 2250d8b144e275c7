internal import Foundation
package import HTTPSession

extension RequestFields {
    /// Returns `text` transliterated to ASCII by ICU's rules: `日本` becomes `ri ben`.
    ///
    /// `RequestFields.userAgent(product:version:system:)` omits characters that are not Latin.
    package static func latinized(_ text: String) -> String {
        let transform = StringTransform("Any-Latin; Latin-ASCII; [:^ASCII:] Remove")
        return text.applyingTransform(transform, reverse: false) ?? text.filter(\.isASCII)
    }
}
