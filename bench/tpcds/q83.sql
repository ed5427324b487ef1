WITH near AS (
    SELECT i_item_id AS item_id, sum(sr_return_quantity) AS quantity
    FROM store_returns, item, date_dim
    WHERE sr_item_sk = i_item_sk AND sr_returned_date_sk = d_date_sk
        AND d_date IN (
            SELECT d_date FROM date_dim WHERE d_week_seq IN (
                SELECT d_week_seq FROM date_dim
                WHERE d_date IN (DATE '2000-06-17', DATE '2000-08-22', DATE '2000-11-17')
            )
        )
    GROUP BY i_item_id
),
catalog AS (
    SELECT i_item_id AS item_id, sum(cr_return_quantity) AS quantity
    FROM catalog_returns, item, date_dim
    WHERE cr_item_sk = i_item_sk AND cr_returned_date_sk = d_date_sk
        AND d_date IN (
            SELECT d_date FROM date_dim WHERE d_week_seq IN (
                SELECT d_week_seq FROM date_dim
                WHERE d_date IN (DATE '2000-06-17', DATE '2000-08-22', DATE '2000-11-17')
            )
        )
    GROUP BY i_item_id
),
web AS (
    SELECT i_item_id AS item_id, sum(wr_return_quantity) AS quantity
    FROM web_returns, item, date_dim
    WHERE wr_item_sk = i_item_sk AND wr_returned_date_sk = d_date_sk
        AND d_date IN (
            SELECT d_date FROM date_dim WHERE d_week_seq IN (
                SELECT d_week_seq FROM date_dim
                WHERE d_date IN (DATE '2000-06-17', DATE '2000-08-22', DATE '2000-11-17')
            )
        )
    GROUP BY i_item_id
)
SELECT near.item_id, near.quantity AS store_quantity,
    near.quantity / (near.quantity + catalog.quantity + web.quantity) / 3.0 * 100 AS store_share,
    catalog.quantity AS catalog_quantity, web.quantity AS web_quantity,
    (near.quantity + catalog.quantity + web.quantity) / 3.0 AS average
FROM near, catalog, web
WHERE near.item_id = catalog.item_id AND near.item_id = web.item_id
ORDER BY near.item_id, store_quantity
LIMIT 100
