import Foundation

/// A command to the process of a loader: one line of JSON.
struct Command: Codable, Sendable {
  enum Kind: String, Codable, Sendable { case load, close }

  var id: Int
  var kind: Kind
  var url: URL?
  var fields: [String: String]?
}

/// The reply to a command: one line of JSON.
struct Reply: Codable, Sendable {
  var id: Int
  var status: Int?
  var body: Data?
  var error: String?
}
