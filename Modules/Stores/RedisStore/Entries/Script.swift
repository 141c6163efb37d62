#if Redis
internal import CacheCore

/// A Lua script that the server runs in one atomic step. ``EntryRecord`` has the offsets of the record's parts.
enum Script: CaseIterable {
  /// Makes an entry visible and replaces the one before it.
  ///
  /// Keys: the entries, and the new body unless it is small. Arguments: field, value, number of chunks (0 for a small body), time
  /// to live, first part of the names of bodies, time to live of a replaced body. If there is a lease, also its token and its
  /// key. Times are in milliseconds.
  ///
  /// Returns 0 if a chunk is missing, because the server evicted the body. Returns -1 if a later lease has been granted.
  case commit
  /// Stores chunks of a body, with a time to live.
  ///
  /// Keys: the body. Arguments: time to live, chunks as pairs of number and bytes.
  case append
  /// Replaces the metadata of an entry.
  ///
  /// Keys: the entries. Arguments: field, revision, description, its size, time to live, first part of the names of bodies, time
  /// to live of a removed body.
  ///
  /// Returns 0 if there is no entry with the revision.
  case update
  /// Removes an entry from each key. A key that belongs to another program does not prevent the others.
  ///
  /// Keys: the entries. Arguments, for each key: field, expected revision or an empty string, expected identifier of the body or
  /// an empty string, first part of the names of bodies, time to live of a removed body.
  case remove
  /// Removes a damaged entry unless it has been replaced.
  ///
  /// Keys: the entries. Arguments: field, value.
  case discard
  /// Returns an entry without its body.
  ///
  /// Keys: the entries. Arguments: field.
  case peek
  /// Returns the entries of several keys without their bodies. Keys that belong to other programs are left out.
  case list
  /// Grants a lease if no process holds it.
  ///
  /// Keys: the lease. Arguments: time to live, position of the last response that the caller has looked for, or 0.
  ///
  /// Returns the state and the token: `G` if the lease is granted, otherwise the state of another process's lease.
  case acquire
  /// Replaces the state of a lease, unless another process has been granted it.
  ///
  /// Keys: the lease. Arguments: token, new state, time to live.
  ///
  /// Returns 0 if the caller no longer holds the lease.
  case changeLease
  /// Returns the messages of a fleet that a member has not handled, and records the messages that it has.
  ///
  /// Keys: the members, the messages. Arguments: member, epoch or an empty string, number of the last handled message, maximum
  /// number of messages, time for which the member is current.
  ///
  /// Returns the epoch, the number of the last message, the number before the returned messages, and the messages. That number is
  /// -1 if the member is unknown or the epoch is another one.
  case pollFleet
  /// Adds a message to a fleet.
  ///
  /// Keys: the members, the messages. Arguments: message, number of messages to keep, sender.
  ///
  /// Returns the epoch, the number, and 1 if members of an earlier epoch are no longer current.
  case sendToFleet
  /// Returns the longest time for which a member that has not handled a message may be current, or 0 if there is no such member.
  ///
  /// Keys: the members, the messages. Arguments: member, epoch, number, and 1 if that time has passed. The members are then
  /// recorded as not current.
  ///
  /// Returns -1 if the server has lost the message.
  case awaitFleet
  /// Removes a member, or records it as not current if it has a name.
  ///
  /// Keys: the members. Arguments: member, whether it has a name (0 or 1).
  case leaveFleet
  /// Adds a resource to the index of a cache tag.
  ///
  /// Keys: the index. Arguments: the digest of the resource, the time until it expires. The scores are times of the server,
  /// because the clocks of machines differ.
  case index

  /// The maximum size in bytes of the reply.
  fileprivate var replyLimit: Int {
    switch self {
    case .peek: RedisCommand.entryReply
    case .list, .pollFleet: RedisCommand.listReply
    default: RedisCommand.smallReply
    }
  }

  /// The command that stores the script in the server.
  var loading: RedisCommand { RedisCommand("SCRIPT", "LOAD", .text(source)) }

  /// The server does not run a script whose keys have another type than expected: it returns `WRONGTYPE`.
  var source: String {
    switch self {
    case .commit:
      Self.shared + """
        local old = redis.call('HGET', KEYS[1], ARGV[1])
        if old and not isOurs(old) then
          local found = 'the key has an entry of ' .. (string.match(old, 'ETR%w$') or 'another schema')
          return redis.error_reply('FOREIGN ' .. found .. ', but this store supports only \(EntryRecord.magic)')
        end
        local chunks, ttl = tonumber(ARGV[3]), tonumber(ARGV[4])
        if ARGV[7] then
          -- A cluster that moves the slot may not have moved the lease yet, and the call then fails.
          local lease = redis.pcall('GET', ARGV[8])
          if type(lease) == 'string' and tonumber(string.sub(lease, 2)) > tonumber(ARGV[7]) then return -1 end
        end
        if chunks > 0 and redis.call('HLEN', KEYS[2]) ~= chunks then return 0 end
        if old then discard(old, ARGV[5], ARGV[6]) end
        -- An entry that has expired replaces the old one and is removed at once.
        if chunks > 0 then redis.call('PEXPIRE', KEYS[2], ARGV[4]) end
        if ttl <= 0 then
          redis.call('HDEL', KEYS[1], ARGV[1])
          return 1
        end
        redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
        extendLifetime(KEYS[1], ttl)
        return 1
        """
    case .append:
      """
      redis.call('HSET', KEYS[1], unpack(ARGV, 2))
      redis.call('PEXPIRE', KEYS[1], ARGV[1])
      return 1
      """
    case .update:
      Self.shared + """
        local old = redis.call('HGET', KEYS[1], ARGV[1])
        if not old or not isOurs(old) or revision(old) ~= ARGV[2] then return 0 end
        local ttl = tonumber(ARGV[5])
        if ttl <= 0 then
          redis.call('HDEL', KEYS[1], ARGV[1])
          discard(old, ARGV[6], ARGV[7])
          return 1
        end
        if isChunked(old) and redis.pcall('PEXPIRE', ARGV[6] .. body(old), ARGV[5]) == 0 then
          redis.call('HDEL', KEYS[1], ARGV[1])
          return 0
        end
        redis.call('HSET', KEYS[1], ARGV[1], string.sub(old, 1, start(old) - 1) .. ARGV[3] .. ARGV[4] .. string.sub(old, -61))
        extendLifetime(KEYS[1], ttl)
        return 1
        """
    case .remove:
      Self.shared + """
        local failure
        for i, key in ipairs(KEYS) do
          local n = 5 * i - 4
          local old = redis.pcall('HGET', key, ARGV[n])
          if type(old) == 'table' then
            failure = failure or old
          elseif old and isOurs(old) and (ARGV[n + 1] == '' or revision(old) == ARGV[n + 1])
            and (ARGV[n + 2] == '' or body(old) == ARGV[n + 2])
          then
            redis.call('HDEL', key, ARGV[n])
            discard(old, ARGV[n + 3], ARGV[n + 4])
          end
        end
        return failure or 1
        """
    case .discard:
      """
      if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
      return 1
      """
    case .peek:
      Self.shared + """
        local value = redis.call('HGET', KEYS[1], ARGV[1])
        if not value or not isOurs(value) then return false end
        return string.sub(value, start(value))
        """
    case .list:
      Self.shared + """
        local found = {}
        for _, key in ipairs(KEYS) do
          local values = redis.pcall('HVALS', key)
          if values.err and not string.find(values.err, 'WRONGTYPE', 1, true) then return values end
          for _, value in ipairs(values) do
            if isOurs(value) then found[#found + 1] = string.sub(value, start(value)) end
          end
        end
        return found
        """
    case .acquire:
      // A token is the server's time in microseconds, so it also increases after the server has lost its data.
      """
      local known = redis.call('GET', KEYS[1])
      local last = 0
      if known then
        local state = string.sub(known, 1, 1)
        last = tonumber(string.sub(known, 2))
        if state == '\(LeaseState.held)' or state == '\(LeaseState.notShared)' then return {state, string.sub(known, 2)} end
        if state == '\(LeaseState.stored)' and last > tonumber(ARGV[2]) then return {state, string.sub(known, 2)} end
      end
      local time = redis.call('TIME')
      local token = string.format('%.0f', math.max(time[1] * 1000000 + time[2], last + 1))
      redis.call('SET', KEYS[1], '\(LeaseState.held)' .. token, 'PX', ARGV[1])
      return {'\(LeaseState.granted)', token}
      """
    case .changeLease:
      """
      -- A lease that has expired belongs to the caller until another process requests it.
      local known = redis.call('GET', KEYS[1])
      if known and known ~= '\(LeaseState.held)' .. ARGV[1] then return 0 end
      redis.call('SET', KEYS[1], ARGV[2] .. ARGV[1], 'PX', ARGV[3])
      return 1
      """
    case .pollFleet:
      Self.fleet + """
        local member, number = 'm' .. ARGV[1], tonumber(ARGV[3])
        if ARGV[2] == '' then
          local known = redis.call('HGET', KEYS[1], member)
          number = known and tonumber(string.match(known, '^%d+')) or -1
        elseif ARGV[2] ~= epoch then
          number = -1
        end
        if number < 0 then return {epoch, last, -1, {}} end
        -- A member without a position is not current yet, so no message waits for it.
        local timeout = ARGV[2] == '' and '0' or ARGV[5]
        redis.call('HSET', KEYS[1], member, string.format('%.0f %.0f ', number, now) .. timeout)
        return {epoch, last, number, redis.call('XRANGE', KEYS[2], string.format('%.0f', number + 1), '+', 'COUNT', ARGV[4])}
        """
    case .sendToFleet:
      Self.fleet + """
        -- The server's time, so that no number occurs twice after the server was restored from an older snapshot.
        local number = math.max(time[1] * 1000000 + time[2], last + 1)
        redis.call(
          'XADD', KEYS[2], 'MAXLEN', '~', ARGV[2], string.format('%.0f-0', number),
          'p', string.format('%.0f', last), 's', ARGV[3], 't', ARGV[1])
        redis.call('HSET', KEYS[1], 'last', string.format('%.0f', number))
        return {epoch, number, redis.call('HEXISTS', KEYS[1], 'settled')}
        """
    case .awaitFleet:
      Self.fleet + """
        if ARGV[2] ~= epoch or last < tonumber(ARGV[3]) then return -1 end
        local longest = 0
        local all = redis.call('HGETALL', KEYS[1])
        for i = 1, #all, 2 do
          local number, seen, timeout = string.match(all[i + 1], '^(%d+) (%d+) (%d+)$')
          if number and timeout == '0' then
            -- A member that has not returned for a week.
            if now - tonumber(seen) > 604800000 then redis.call('HDEL', KEYS[1], all[i]) end
          elseif number and all[i] ~= 'm' .. ARGV[1] and tonumber(number) < tonumber(ARGV[3]) then
            longest = math.max(longest, tonumber(timeout))
            if ARGV[4] == '1' then redis.call('HSET', KEYS[1], all[i], number .. ' ' .. seen .. ' 0') end
          end
        end
        if ARGV[4] == '1' then redis.call('HSET', KEYS[1], 'settled', 1) end
        return longest
        """
    case .leaveFleet:
      """
      local known = redis.call('HGET', KEYS[1], 'm' .. ARGV[1])
      if not known then return 0 end
      if ARGV[2] == '0' then return redis.call('HDEL', KEYS[1], 'm' .. ARGV[1]) end
      redis.call('HSET', KEYS[1], 'm' .. ARGV[1], string.match(known, '^%d+ %d+') .. ' 0')
      return 1
      """
    case .index:
      """
      local time = redis.call('TIME')
      local now = time[1] * 1000 + math.floor(time[2] / 1000)
      redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - 60000))
      redis.call('ZADD', KEYS[1], 'GT', string.format('%.0f', now + tonumber(ARGV[2])), ARGV[1])
      if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) + 60000 then
        redis.call('PEXPIRE', KEYS[1], string.format('%.0f', tonumber(ARGV[2]) + 60000))
      end
      return 1
      """
    }
  }

  /// The epoch is the server's time at which the fleet's data was created, in milliseconds. Members and the number of the last
  /// message share one key, so the server evicts them together.
  private static let fleet = """
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local epoch = redis.call('HGET', KEYS[1], 'epoch')
    if not epoch then
      epoch = string.format('%.0f', now)
      redis.call('DEL', KEYS[1], KEYS[2])
      redis.call('HSET', KEYS[1], 'epoch', epoch, 'last', 0)
    end
    local last = tonumber(redis.call('HGET', KEYS[1], 'last'))

    """

  private static let shared = """
    local function isOurs(value) return string.sub(value, -4) == '\(EntryRecord.magic)' end
    local function isChunked(value) return string.sub(value, -61, -61) == 'C' end
    local function body(value) return string.sub(value, -60, -45) end
    local function revision(value) return string.sub(value, -44, -29) end
    -- The position after a small body.
    local function start(value) return #value - 68 - (tonumber(string.sub(value, -69, -62), 16) or 0) end
    -- A reader may have opened the body, so it is not removed at once. A cluster that moves the slot may have moved the body already,
    -- and the call then fails.
    local function discard(value, bodies, ttl)
      if isChunked(value) then redis.pcall('PEXPIRE', bodies .. body(value), ttl) end
    end
    -- Another entry in the key may live longer.
    local function extendLifetime(key, ttl)
      if redis.call('HLEN', key) <= 1 or redis.call('PTTL', key) < ttl then
        redis.call('PEXPIRE', key, string.format('%.0f', ttl))
      end
    end

    """
}

/// The keys and the arguments of a script. All keys have the hash tag, unless calls were joined.
struct ScriptCall: Sendable {
  let tag: HashTag
  let keys: [[UInt8]]
  var arguments: [RedisCommand.Argument] = []

  /// Returns one call that does the work of several. Its keys have several hash tags, which a cluster refuses.
  static func joining(_ calls: ArraySlice<ScriptCall>) -> ScriptCall {
    ScriptCall(tag: calls[calls.startIndex].tag, keys: calls.flatMap(\.keys), arguments: calls.flatMap(\.arguments))
  }
}

/// The identifiers of the scripts that the servers have stored. They are equal on all servers.
final class ScriptTable: Sendable {
  private let identifiers = Lock<[Script: String]>([:])

  func record(_ identifier: String, of script: Script) { identifiers.withLock { $0[script] = identifier } }

  /// Returns the command that runs a script.
  ///
  /// - Parameter isStored: Whether the server is expected to have the script. Otherwise its whole text is sent.
  func command(
    _ script: Script, isStored: Bool = true, keys: [[UInt8]], _ arguments: [RedisCommand.Argument]
  ) -> RedisCommand {
    let identifier = isStored ? identifiers.withLock { $0[script] } : nil
    let start: [RedisCommand.Argument] = identifier.map { ["EVALSHA", .text($0)] } ?? ["EVAL", .text(script.source)]
    return RedisCommand(
      start + [.number(keys.count)] + keys.map { .bytes($0) } + arguments, replyLimit: script.replyLimit)
  }
}
#endif
