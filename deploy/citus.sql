-- Spreads what pawl stores over a Citus cluster. Run it on the coordinator as the owner of the tables, after `pawl migrate` and before the
-- first request of the day it is to help; once more does nothing:
--
--   psql "$DATABASE_URL" -v ON_ERROR_STOP=1 -f deploy/citus.sql
--
-- It needs the extension citus, its workers, and max_prepared_transactions above 0 on all nodes. pawl goes on connecting to the coordinator
-- alone. docs/decisions/0020-spreading.md says why these tables, and what the others wait for.

-- What fills the disk: 13 of 13 GB a day. No request of a phone touches it; the sealer writes it in the background.
select create_distributed_table('audit_log', 'activation_id')
  where not exists (select from pg_dist_partition where logicalrelid = 'audit_log'::regclass);

-- The keys of users are read beside the rows of the log, so each node has them.
select create_reference_table('audit_user_key')
  where not exists (select from pg_dist_partition where logicalrelid = 'audit_user_key'::regclass);

-- Everything else stays on the coordinator, where requests find all of it in one statement. The rest of this file is for the day that it
-- cannot: what each table would be spread by. test/storage/spread.test.ts reads it, and fails for a table that is missing here and for a
-- statement that joins tables of two lists without being on a list of its own.
--
-- would spread by activation_id: activation, activation_history, activation_upgrade, audit_pending, config_item, push_registration, token
-- would spread by user_id: inbox_message, operation, user_claims
-- would spread by operation_id: operation_nonce
-- would spread by temporary_key_id: temporary_key
-- would spread by value_hash: unique_value
-- would spread by key_hash: door_verdict
-- would spread by challenge_id: offline_challenge
-- would spread by ticket_id: sealed_answer
-- would be everywhere: application, application_version, master_key_pair, oidc_provider, pinned_certificate, pinned_domain, pinning_key_pair,
--   template, template_revision, ticket_fence, user_erasure, version_rule, version_text, webhook, wrapped_key
-- would stay on one node: admin_event, audit_chain, audit_deliverer, audit_delivery, audit_event, audit_seal, audit_sealer, audit_source,
--   console_session, credential, credential_password, failure_count, idempotency_key, record_binding, stranger_count, webhook_delivery
