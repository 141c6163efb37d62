#if Redis
import CacheCore
import Foundation
import LocalRedis
import Testing

@testable import RedisStore

/// The keys of a server, as the commands that create them.
///
/// As text, a command is a line of words. A word in double quotes has its bytes outside printable ASCII as `\xHH`. `now+N` is the
/// time in milliseconds N after the commands run.
struct KeyDump {
  enum Word: Hashable {
    case bytes(Data)
    case time(Int64)

    static func text(_ text: String) -> Word { .bytes(Data(text.utf8)) }

    var data: Data { if case .bytes(let data) = self { data } else { Data() } }
  }

  var commands: [[Word]] = []

  // MARK: Server

  /// Reads all keys whose names begin with a text.
  init(_ cache: RedisCache, prefix: String = "") async throws {
    func send(_ words: [RedisCommand.Argument]) async throws -> RESPValue {
      try await cache.engine.send([RedisCommand(words, replyLimit: RedisCommand.listReply)], for: HashTag("dump"))[0]
    }
    func list(_ words: [RedisCommand.Argument]) async throws -> [Data] { (try await send(words).array ?? []).compactMap(\.bytes) }
    let time = try await list(["TIME"]).map { Int64(String(decoding: $0, as: UTF8.self)) ?? 0 }
    let now = time[0] * 1_000 + time[1] / 1_000
    for key in try await list(["KEYS", .text(prefix + "*")]).sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      switch try await send(["TYPE", .data(key)]).text {
      case "hash":
        let parts = try await list(["HGETALL", .data(key)])
        let pairs = stride(from: 0, to: parts.count, by: 2).map { (parts[$0], parts[$0 + 1]) }
        for (field, value) in pairs.sorted(by: { $0.0.lexicographicallyPrecedes($1.0) }) {
          commands.append([.text("HSET"), .bytes(key), .bytes(field), .bytes(value)])
        }
      case "string":
        let value = try await send(["GET", .data(key)]).bytes
        commands.append([.text("SET"), .bytes(key), .bytes(try #require(value))])
      case "zset":
        let parts = try await list(["ZRANGE", .data(key), "0", "-1", "WITHSCORES"])
        for index in stride(from: 0, to: parts.count, by: 2) {
          let score = try #require(Double(String(decoding: parts[index + 1], as: UTF8.self)))
          commands.append([.text("ZADD"), .bytes(key), .time(Self.rounded(Int64(score) - now)), .bytes(parts[index])])
        }
      case "stream":
        for entry in try await send(["XRANGE", .data(key), "-", "+"]).array ?? [] {
          let parts = try #require(entry.array)
          let fields = try #require(parts[1].array).compactMap(\.bytes).map { Word.bytes($0) }
          commands.append([.text("XADD"), .bytes(key), .bytes(try #require(parts[0].bytes))] + fields)
        }
      case let type: throw CacheError(.other, reason: "a key of type \(type ?? "unknown")")
      }
      if let left = try await send(["PTTL", .data(key)]).integer, left >= 0 {
        commands.append([.text("PEXPIRE"), .bytes(key), .text("\(Self.rounded(left))")])
      }
    }
  }

  /// Returns the next multiple of ten seconds, because some time has passed since the key was written.
  private static func rounded(_ milliseconds: Int64) -> Int64 { (milliseconds + 9_999) / 10_000 * 10_000 }

  /// Creates the keys. Those that would soon expire live for a day, so that a slow test still finds them.
  func run(on server: RedisServer) throws {
    let now = SystemClock().now.nanoseconds / 1_000_000
    for command in commands {
      var words = command.map { word in
        switch word {
        case .bytes(let data): data
        case .time(let later): Data("\(now + later)".utf8)
        }
      }
      if words[0] == Data("PEXPIRE".utf8), let time = Int64(String(decoding: words[2], as: UTF8.self)) {
        words[2] = Data("\(max(time, 86_400_000))".utf8)
      }
      let reply = try server.run(words)
      if reply.hasPrefix("-") || reply.isEmpty { throw CacheError(.other, reason: "the server replied '\(reply)'") }
    }
  }

  // MARK: Text

  /// Reads the commands in a text.
  init(text: Data) throws {
    for line in text.split(separator: UInt8(ascii: "\n")) {
      var words: [Word] = []
      var rest = line[...]
      while let first = rest.first {
        if first == UInt8(ascii: " ") {
          rest = rest.dropFirst()
        } else if first == UInt8(ascii: "\"") {
          words.append(.bytes(try Self.quoted(&rest)))
        } else {
          let word = String(decoding: rest.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self)
          rest = rest.dropFirst(word.utf8.count)
          words.append(word.hasPrefix("now+") ? .time(try #require(Int64(word.dropFirst(4)))) : .text(word))
        }
      }
      commands.append(words)
    }
  }

  private static func quoted(_ rest: inout Data.SubSequence) throws -> Data {
    var word = Data()
    rest = rest.dropFirst()
    while let byte = rest.first, byte != UInt8(ascii: "\"") {
      guard byte == UInt8(ascii: "\\") else {
        word.append(byte)
        rest = rest.dropFirst()
        continue
      }
      word.append(try #require(UInt8(String(decoding: rest.dropFirst(2).prefix(2), as: UTF8.self), radix: 16)))
      rest = rest.dropFirst(4)
    }
    rest = rest.dropFirst()
    return word
  }

  var text: Data {
    var text = Data()
    for command in commands {
      let words = command.enumerated().map { index, word in
        switch word {
        case .time(let later): "now+\(later)"
        case .bytes(let data): index == 0 ? String(decoding: data, as: UTF8.self) : "\"\(Self.escaped(data))\""
        }
      }
      text += Data((words.joined(separator: " ") + "\n").utf8)
    }
    return text
  }

  private static func escaped(_ data: Data) -> String {
    var text = ""
    for byte in data {
      let isPlain = (0x20..<0x7F).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
      text += isPlain ? String(UnicodeScalar(byte)) : "\\x\(Hexadecimal.text(UInt64(byte)).suffix(2))"
    }
    return text
  }

  // MARK: Comparison

  /// The commands without what differs in each run: the identifiers of bodies with the checksums over them, the times of the
  /// server and of messages, the names of their senders, and whether members without contact were waited for.
  var normalized: Set<[Word]> {
    Set(
      commands.filter { $0[0] != .text("PEXPIRE") && $0[2] != .text("settled") }.map { command in
        var words = command
        words[1] = Self.normalized(name: command[1].data)
        let kind = command[1].data.drop { $0 != UInt8(ascii: "}") }.dropFirst().first
        switch kind {
        case UInt8(ascii: "v"), UInt8(ascii: "t"):
          var record = command[3].data
          // The identifier, and the checksum of the trailer.
          record.replaceSubrange(record.count - 60..<record.count - 44, with: Data(count: 16))
          record.replaceSubrange(record.count - 8..<record.count - 4, with: Data(count: 4))
          words[3] = .bytes(record)
        case UInt8(ascii: "b"): words[3] = .bytes(command[3].data.dropLast(4))
        case UInt8(ascii: "g"): words[2] = .time(0)
        case UInt8(ascii: "m"):
          words[6] = .text("")
          words[8] = .text(Self.sorted(json: command[8].data))
          fallthrough
        default: words.replaceSubrange(2..., with: words[2...].map { Self.withoutTimes($0) })
        }
        return words
      })
  }

  /// The remaining times of keys in milliseconds.
  var lifetimes: [Word: Int64] {
    let lifetimes = commands.filter { $0[0] == .text("PEXPIRE") }.map { command in
      (Self.normalized(name: command[1].data), Int64(String(decoding: command[2].data, as: UTF8.self)) ?? 0)
    }
    return Dictionary(lifetimes, uniquingKeysWith: max)
  }

  private static func normalized(name: Data) -> Word {
    let tail = name.drop { $0 != UInt8(ascii: "}") }.dropFirst()
    return .bytes(tail.first == UInt8(ascii: "b") ? name.dropLast(16) : name)
  }

  /// Replaces numbers of ten digits and more, which are times.
  private static func withoutTimes(_ word: Word) -> Word {
    let text = String(decoding: word.data, as: UTF8.self)
    return .text(text.replacing(/[0-9]{10,}/, with: "#"))
  }

  private static func sorted(json: Data) -> String {
    let value = (try? JSONSerialization.jsonObject(with: json)) ?? [:]
    let sorted = (try? JSONSerialization.data(withJSONObject: value, options: .sortedKeys)) ?? Data()
    return String(decoding: sorted, as: UTF8.self)
  }
}
#endif
